package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/ops"
	"reprise/tasks"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	filterFlags
	all, dryRun bool
	rate        string
}

func newReplay(a *app) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [KEY…]",
		Short: "Run archived tasks again, at a given rate (each call costs its units again; --dry-run says how many)",
		Long: `Replays the tasks with the given keys, which may be shortened, or the archived tasks that the flags select; --all selects
all. Tasks that failed permanently are left out. The command can be stopped and repeated: no task is queued twice.`,
		Example: `  inspect replay --outcome quota --dry-run
  inspect replay --outcome quota --rate 20/s
  inspect replay recognize_3q…`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && !f.chosen() && !f.all:
				return cli.Errorf(cli.Usage, "which tasks? give keys, a flag such as --outcome, or --all")
			case len(args) > 0 && (f.chosen() || f.all):
				return cli.Errorf(cli.Usage, "give either keys or flags that select tasks, not both")
			}
			needs := needsStore
			if !f.dryRun {
				needs |= needsRedis
			}
			return a.run(needs, f.replay)(cmd, args)
		},
	}
	f.add(cmd, 100_000)
	cmd.Flags().BoolVar(&f.all, "all", false, "all tasks that can be replayed")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be replayed and its maximum cost, and change nothing")
	cmd.Flags().StringVar(&f.rate, "rate", "10/s", "tasks to queue per second (/s) or minute (/min)")
	return cmd
}

func (f *replayFlags) replay(ctx context.Context, s *session, keys []string) error {
	gap, err := parseRate(f.rate)
	if err != nil {
		return err
	}
	plan, err := f.plan(ctx, s, keys)
	if err != nil {
		return err
	}
	r := plan.Report
	if n := plan.Tasks(); n > 0 && !s.json {
		s.Line("%s %s at most, %s; about %s at %s", replayText(r, n, f.dryRun), text.Count(r.Units, "unit", "units"),
			s.money(r.Units), text.Span(gap*time.Duration(n)), f.rate)
	}
	if !f.dryRun {
		r, err = s.Replays.Run(ctx, plan, gap)
	}
	if err := s.show(r, err, func() { s.printReplay(r) }); err != nil {
		return err
	}
	switch {
	case r.Left > 0:
		return cli.Errorf(cli.Partial, "stopped: %s left; run the same command again to continue, no task is queued twice",
			text.Count(r.Left, "task is", "tasks are"))
	case len(r.Failed) > 0:
		return &cli.Error{Code: cli.Partial}
	}
	return nil
}

func (f *replayFlags) plan(ctx context.Context, s *session, keys []string) (*ops.ReplayPlan, error) {
	if len(keys) > 0 {
		return s.Replays.PlanKeys(ctx, keys)
	}
	filter, err := f.filter(s.Times)
	if err != nil {
		return nil, err
	}
	return s.Replays.Plan(ctx, filter)
}

// replayText says how many tasks are replayed, by outcome.
func replayText(r ops.ReplayReport, n int, dryRun bool) string {
	verb := "replaying"
	if dryRun {
		verb = "would replay"
	}
	var parts []string
	for _, o := range tasks.Outcomes {
		if n := r.Outcomes[string(o)]; n > 0 {
			parts = append(parts, text.Thousands(n)+" "+string(o))
		}
	}
	if n := r.Outcomes[ops.Interrupted]; n > 0 {
		parts = append(parts, text.Thousands(n)+" whose replay was interrupted")
	}
	what := ""
	if len(parts) > 0 {
		what = " (" + strings.Join(parts, ", ") + ")"
	}
	return fmt.Sprintf("%s %s%s,", verb, text.Count(n, "task", "tasks"), what)
}

func (v view) printReplay(r ops.ReplayReport) {
	for _, f := range r.Failed {
		fmt.Fprintf(v.errors, "inspect: %s: %s\n", f.Key, text.Printable(f.Reason))
	}
	switch {
	case r.Found == 0:
		v.Line("nothing to replay")
	case r.DryRun && len(r.Failed) > 0:
		v.Line("would replay %d of %d", r.Found-len(r.Failed), r.Found)
	case !r.DryRun && r.Waiting > 0:
		v.Line("replayed %d of %d, %d already queued", r.Replayed, r.Found, r.Waiting)
	case !r.DryRun:
		v.Line("replayed %d of %d", r.Replayed, r.Found)
	}
}

// parseRate returns the time between two tasks for a rate such as 20/s or 300/min.
func parseRate(text string) (time.Duration, error) {
	number, unit, _ := strings.Cut(text, "/")
	per, ok := map[string]time.Duration{"": time.Second, "s": time.Second, "sec": time.Second, "m": time.Minute, "min": time.Minute}[strings.TrimSpace(unit)]
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(n > 0) || n > 1e6 {
		return 0, cli.Errorf(cli.Usage, "--rate %q: expected a number per second or minute, such as 20/s or 300/min", text)
	}
	return max(time.Duration(float64(per)/n), time.Microsecond), nil
}
