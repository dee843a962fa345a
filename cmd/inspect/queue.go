package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/ops"
)

func newQueues(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "queues",
		Short: "How many tasks each queue has, and why a queue is paused",
		Example: `  inspect queues
  inspect queues --json
  inspect queues --redis redis://queue.internal:6379`,
		Args: cobra.NoArgs,
		RunE: a.run(needsRedis, func(ctx context.Context, s *session, _ []string) error {
			list, err := s.Queues.List(ctx)
			return s.show(list, err, func() { s.printQueues(list) })
		}),
	}
}

func (v view) printQueues(list []ops.QueueStatus) {
	t := cli.Table{Head: []string{"QUEUE", "PENDING", "ACTIVE", "SCHEDULED", "RETRY", "ARCHIVED", "COMPLETED", "OLDEST", "STATE"}}
	for _, q := range list {
		oldest := "–"
		if q.Oldest != nil {
			oldest = text.Span(v.Now.Sub(*q.Oldest))
		}
		state := coloured("running", "running")
		if q.Why != "" {
			state = coloured("paused: "+q.Why, "paused")
		}
		t.Add(q.Queue, q.Pending, q.Active, q.Scheduled, q.Retry, q.Archived, q.Completed, cli.Number(oldest), state)
	}
	v.Table(t)
}

func newPause(a *app) *cobra.Command {
	var r ops.PauseRequest
	cmd := &cobra.Command{
		Use:   "pause QUEUE|PATH…",
		Short: "Stop workers from taking tasks of a queue until it is resumed",
		Long: `A path (recognize, enterprise, upload) stands for its queue and the queues of its groups; --only selects its own queue.
Running calls finish. The pause lasts until an operator resumes the queue.`,
		Example: `  inspect pause recognize --why "prices are being negotiated"
  inspect pause recognize.archive
  inspect pause upload --only --by alice`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.run(needsRedis, func(ctx context.Context, s *session, args []string) error {
			r.Targets, r.By = args, s.by()
			changes, err := s.Queues.Pause(ctx, r)
			return s.show(changes, err, func() {
				for _, c := range changes {
					verb := "was paused already"
					if c.Changed {
						verb = "paused"
					}
					s.Line("%s %s: %s", c.Queue, verb, c.Why)
				}
			})
		}),
	}
	cmd.Flags().StringVar(&r.Why, "why", "", "reason, shown by inspect queues and why")
	addOnly(cmd, &r.Only)
	return cmd
}

func addOnly(cmd *cobra.Command, only *bool) {
	cmd.Flags().BoolVar(only, "only", false, "only the path's own queue, not the queues of its groups")
}

func newResume(a *app) *cobra.Command {
	var r ops.PauseRequest
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "resume QUEUE|PATH|SOURCE/PATH…",
		Short: "End an operator's pause, or probe a halted account (the probe costs the units of one waiting task)",
		Long: `QUEUE or PATH: ends an operator's pause. Automatic pauses end with their cause.
SOURCE/PATH (* for all): sets a halted account, or one with an open breaker, half-open. A worker probes it with the first
waiting task. If the probe succeeds, the account takes calls again, and workers replay the tasks that were archived
because of the account. A throttle continues.`,
		Example: `  inspect resume recognize
  inspect resume main/recognize --dry-run
  inspect resume main/recognize`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sources := 0
			for _, arg := range args {
				sources += min(1, strings.Count(arg, "/"))
			}
			switch {
			case sources > 0 && sources < len(args):
				return cli.Errorf(cli.Usage, "resume queues and accounts in two commands")
			case sources == 0 && dryRun:
				return cli.Errorf(cli.Usage, "--dry-run needs SOURCE/PATH: resuming a queue makes no call by itself")
			case sources == 0:
				return a.run(needsRedis, resumeQueues(r))(cmd, args)
			case dryRun:
				return a.run(needsRedis|needsStore, planResume)(cmd, args)
			}
			return a.run(needsRedis, resumeSources)(cmd, args)
		},
	}
	addOnly(cmd, &r.Only)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what resuming an account would start, and change nothing")
	return cmd
}

func resumeQueues(r ops.PauseRequest) action {
	return func(ctx context.Context, s *session, args []string) error {
		r.Targets = args
		changes, err := s.Queues.Resume(ctx, r)
		return s.show(changes, err, func() {
			for _, c := range changes {
				switch {
				case c.Paused:
					s.Line("%s stays paused: %s", c.Queue, c.Why)
					s.Line("  an automatic pause ends with its cause: inspect halts, inspect sources")
				case c.Changed:
					s.Line("%s runs", c.Queue)
				default:
					s.Line("%s was not paused", c.Queue)
				}
			}
		})
	}
}
