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
		Short: "What waits in each queue, and why a queue is paused",
		Example: `  inspect queues
  inspect queues --json
  inspect queues --redis redis://queue.internal:6379`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				list, err := s.Queues.List(ctx)
				if err != nil {
					return err
				}
				return s.show(list, func() error { return s.Table(s.queueTable(list)) })
			})
		},
	}
}

func (s *session) queueTable(list []ops.QueueStatus) cli.Table {
	t := cli.Table{Head: []string{"QUEUE", "PENDING", "ACTIVE", "SCHEDULED", "RETRY", "ARCHIVED", "COMPLETED", "OLDEST", "STATE"}}
	for _, q := range list {
		oldest := "–"
		if q.Oldest != nil {
			oldest = text.Span(s.Now.Sub(*q.Oldest))
		}
		state := coloured("running", cli.Green)
		if q.Why != "" {
			state = coloured("paused: "+q.Why, cli.Yellow)
		}
		row := []cli.Cell{cli.Text(text.Printable(q.Queue))}
		for _, n := range []int64{q.Pending, q.Active, q.Scheduled, q.Retry, q.Archived, q.Completed} {
			row = append(row, cli.Number(text.Thousands(n)))
		}
		t.Add(append(row, cli.Number(oldest), state)...)
	}
	return t
}

func newPause(a *app) *cobra.Command {
	var r ops.PauseRequest
	cmd := &cobra.Command{
		Use:   "pause QUEUE|PATH…",
		Short: "Stop taking tasks from queues until they are resumed",
		Long: `A path (recognize, enterprise, upload) stands for its queue and those of its groups; --only keeps it to its own queue.
Calls under way finish. An operator's pause lasts until an operator resumes the queue, whatever the gates do.`,
		Example: `  inspect pause recognize --why "prices are being negotiated"
  inspect pause recognize.archive
  inspect pause upload --only --by alice`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				r.Targets, r.By = args, s.by()
				changes, err := s.Queues.Pause(ctx, r)
				if err != nil {
					return err
				}
				return s.show(changes, func() error {
					for _, c := range changes {
						verb := "was paused already"
						if c.Changed {
							verb = "paused"
						}
						s.Line("%s %s: %s", c.Queue, verb, c.Why)
					}
					return nil
				})
			})
		},
	}
	cmd.Flags().StringVar(&r.Why, "why", "", "reason, shown by inspect queues and why")
	cmd.Flags().BoolVar(&r.Only, "only", false, "only the path's own queue, not those of its groups")
	return cmd
}

func newResume(a *app) *cobra.Command {
	var r ops.PauseRequest
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "resume QUEUE|PATH|SOURCE/PATH…",
		Short: "End an operator's pause, or probe a halted account (the probe costs the units of one waiting task)",
		Long: `QUEUE or PATH: ends an operator's pause. Automatic reasons stay until their cause ends.
SOURCE/PATH (* for all): sets a halted account, or one with an open breaker, half-open. A worker probes it with the first
waiting task. If that succeeds, the account takes calls again, and workers replay, at a pace, what was archived for an
account reason. A throttle goes on.`,
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
				return cli.Errorf(cli.Usage, "--dry-run is for SOURCE/PATH: resuming a queue makes no calls by itself")
			case sources > 0:
				return a.resumeSources(cmd.Context(), args, dryRun)
			}
			r.Targets = args
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error { return s.resumeQueues(ctx, r) })
		},
	}
	cmd.Flags().BoolVar(&r.Only, "only", false, "only the path's own queue, not those of its groups")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what resuming an account would start, and change nothing")
	return cmd
}

func (s *session) resumeQueues(ctx context.Context, r ops.PauseRequest) error {
	changes, err := s.Queues.Resume(ctx, r)
	if err != nil {
		return err
	}
	return s.show(changes, func() error {
		for _, c := range changes {
			switch {
			case c.Paused:
				s.Line("%s stays paused: %s", c.Queue, c.Why)
				s.Line("  an automatic reason ends with its cause: inspect halts, inspect sources")
			case c.Changed:
				s.Line("%s runs", c.Queue)
			default:
				s.Line("%s was not paused", c.Queue)
			}
		}
		return nil
	})
}
