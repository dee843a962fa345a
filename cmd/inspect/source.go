package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/ops"
	"reprise/tasks"
)

func newSources(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sources",
		Short: "Each account and path: state, calls in flight, rate, breaker, budgets",
		Example: `  inspect sources
  inspect sources --json
  inspect limits                # the limits in force`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				r, err := s.Sources.List(ctx)
				if err != nil {
					return err
				}
				return s.show(r, func() error { return s.printSources(r) })
			})
		},
	}
}

func (s *session) printSources(r ops.SourcesReport) error {
	if len(r.Sources) == 0 {
		s.Line("no sources: no worker has written any to this Redis yet")
		return nil
	}
	t := cli.Table{Head: []string{"SOURCE/PATH", "IN FLIGHT", "RATE/MIN", "DONE/MIN", "HEALTH", "LATENCY", "STATE", "BUDGETS"}}
	for _, src := range r.Sources {
		rate, latency := "–", "–"
		if src.PerMinute > 0 {
			rate = text.Thousands(src.PerMinute) + learned(src.RateLearned)
		}
		if src.LatencyMS > 0 {
			latency = text.Span(time.Duration(src.LatencyMS) * time.Millisecond)
		}
		t.Add(cli.Text(src.Source+"/"+string(src.Path)), cli.Number(inFlight(src.InFlight, src.Limit)+learned(src.LimitLearned)), cli.Number(rate), numberOr(src.SuccessesPerMin),
			cli.Number(fmt.Sprintf("%.0f %%", src.Health*100)), cli.Number(latency), coloured(src.State, colourOf(src)), cli.Text(or(s.budgets(src.Budgets))))
	}
	if err := s.Table(t); err != nil {
		return err
	}
	s.Line("together %s in flight%s", inFlight(r.InFlight, r.Limit), after("; budgets: ", s.budgets(r.Budgets)))
	for _, g := range r.Groups {
		s.Line("group %s: %s in flight%s", g.Name, text.Thousands(g.InFlight), after("; budgets: ", s.budgets(g.Budgets)))
	}
	return nil
}

func colourOf(src ops.Source) cli.Colour {
	switch {
	case src.BlockedBy == "halt" || src.BlockedBy == "breaker":
		return cli.Red
	case src.BlockedBy != "" || src.RefusedToken != "":
		return cli.Yellow
	}
	return cli.Green
}

func learned(is bool) string {
	if is {
		return " learned"
	}
	return ""
}

func inFlight(n, limit int64) string {
	if limit <= 0 {
		return text.Thousands(n)
	}
	return text.Thousands(n) + "/" + text.Thousands(limit)
}

// budgets says how far unit budgets are used: "day 61 % of 2,000".
func (s *session) budgets(list []ops.Budget) string {
	var parts []string
	for _, b := range list {
		part := fmt.Sprintf("%s %s of %s", b.Period, text.Share(b.Spent+b.Reserved, b.Cap), text.Thousands(b.Cap))
		switch {
		case b.Missing:
			part = fmt.Sprintf("%s of %s, not counted yet", b.Period, text.Thousands(b.Cap))
		case b.Spent+b.Reserved >= b.Cap:
			part += ", used up until " + s.At(at(b.Resets))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func newHalts(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "halts",
		Short: "Which accounts are halted, why, and what waits for them",
		Example: `  inspect halts
  inspect halts --json
  inspect resume main/recognize --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				r, err := s.Sources.Halts(ctx)
				if err != nil {
					return err
				}
				return s.show(r.Halts, func() error { return s.printHalts(r) })
			})
		},
	}
}

func newHalt(a *app) *cobra.Command {
	var r ops.HaltRequest
	cmd := &cobra.Command{
		Use:   "halt SOURCE/PATH… --why TEXT",
		Short: "Block all calls to an account until it is resumed",
		Long: `* stands for every source or path. Calls under way finish. Tasks wait; those that may use another account do.
To stop a queue instead of an account: inspect pause.`,
		Example: `  inspect halt main/recognize --why "token leaked"
  inspect halt '*/upload' --why "catalog is being cleaned"
  inspect halt spare/* --why maintenance --probe-after 30m`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(r.Why) == "" {
				return cli.Errorf(cli.Usage, "--why TEXT is required: it is shown to everyone who finds the account halted")
			}
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				r.Targets, r.By = args, s.by()
				halts, err := s.Sources.Halt(ctx, r)
				if err != nil {
					return err
				}
				return s.show(halts.Halts, func() error { return s.printHalts(halts) })
			})
		},
	}
	cmd.Flags().StringVar(&r.Why, "why", "", "reason, shown by inspect halts, sources and why")
	cmd.Flags().DurationVar(&r.ProbeAfter, "probe-after", 0, "let one call probe the account after this time; 0 = only inspect resume ends the halt")
	return cmd
}

func (s *session) printHalts(r ops.HaltsReport) error {
	t := cli.Table{Head: []string{"SOURCE/PATH", "REASON", "SINCE", "BY", "TOKEN", "PROBE", "WAITING"}}
	for _, h := range r.Halts {
		probe := "on resume"
		if h.ProbeAt != nil {
			probe = s.Until(*h.ProbeAt)
		}
		t.Add(cli.Text(h.Source+"/"+string(h.Path)), coloured(h.Reason, cli.Red), cli.Text(s.Since(at(h.Since))), cli.Text(h.By),
			cli.Text(or(text.Short(h.RefusedToken, 9))), cli.Text(probe), cli.Number(text.Thousands(h.Waiting)))
	}
	if len(r.Halts) == 0 {
		s.Line("nothing is halted")
	} else if err := s.Table(t); err != nil {
		return err
	}
	if r.BlockedForAWhile > 0 {
		s.Line("%s blocked for a while by a throttle or breaker: inspect sources", text.Count(r.BlockedForAWhile, "more is", "more are"))
	}
	return nil
}

func (a *app) resumeSources(ctx context.Context, targets []string, dryRun bool) error {
	needs := needsRedis
	if dryRun {
		needs |= needsStore
	}
	return a.with(ctx, needs, func(ctx context.Context, s *session) error {
		var r ops.ResumeReport
		var err error
		if dryRun {
			r, err = s.Sources.ResumePlan(ctx, targets)
		} else {
			r, err = s.Sources.Resume(ctx, targets, s.by())
		}
		if err != nil {
			return err
		}
		return s.show(r.Sources, func() error { s.printResume(r); return nil })
	})
}

func (s *session) printResume(r ops.ResumeReport) {
	if r.Open != "" {
		s.Line("nothing to resume: %s is neither halted nor has an open breaker", r.Open)
		return
	}
	dryRun := false
	for _, src := range r.Sources {
		waiting := text.Count(src.Waiting, "waiting task", "waiting tasks")
		if src.DryRun {
			dryRun = true
			s.Line("%s/%s (%s): would probe with one waiting task, then run %s and replay %s archived for an account reason; %s",
				src.Source, src.Path, src.Was, waiting, text.Thousands(*src.Archived), s.resumeCost(src))
			continue
		}
		s.Line("%s/%s (was %s) is half-open: a worker probes it with the first of %s", src.Source, src.Path, src.Was, waiting)
	}
	switch {
	case dryRun:
	case r.Workers == 0:
		s.Line("no worker runs on this Redis: the probe waits for one (worker run)")
	default:
		s.Line("follow it: inspect halts")
	}
}

func (s *session) resumeCost(r ops.Resumed) string {
	if r.Path == tasks.Enterprise {
		return "the units depend on the length of the recordings"
	}
	out := text.Count(*r.Units, "unit", "units") + ", " + s.money(*r.Units)
	if r.About != nil {
		out += ", about " + text.Span(time.Duration(*r.About*float64(time.Second)))
	}
	return out
}
