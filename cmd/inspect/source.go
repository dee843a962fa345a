package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/admission"
	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/ops"
)

func newSources(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sources",
		Short: "The state, calls in flight, rate and budgets of each account and path",
		Example: `  inspect sources
  inspect sources --json
  inspect limits                # the limits in force`,
		Args: cobra.NoArgs,
		RunE: a.run(needsRedis, func(ctx context.Context, s *session, _ []string) error {
			r, err := s.Sources.List(ctx)
			return s.show(r, err, func() { s.printSources(r) })
		}),
	}
}

func (v view) printSources(r ops.SourcesReport) {
	if len(r.Sources) == 0 {
		v.Line("no sources: no worker has written any to this Redis yet")
		return
	}
	t := cli.Table{Head: []string{"SOURCE/PATH", "IN FLIGHT", "RATE/MIN", "DONE/MIN", "HEALTH", "LATENCY", "STATE", "BUDGETS"}}
	for _, src := range r.Sources {
		rate, latency, state := "–", "–", coloured(src.State, cmp.Or(src.BlockedBy, "running"))
		if src.RequestsPerMinute > 0 {
			rate = text.Thousands(src.RequestsPerMinute) + learned(src.RateLearned)
		}
		if src.Latency > 0 {
			latency = text.Span(src.Latency)
		}
		if src.BlockedBy == "" && src.LastRefusedToken != "" {
			state.Colour = cli.Yellow
		}
		t.Add(src.Source+"/"+string(src.Path), cli.Number(inFlight(src.InFlight, src.Concurrency)+learned(src.ConcurrencyLearned)), cli.Number(rate),
			numberOr(src.SuccessesPerMinute), cli.Number(fmt.Sprintf("%.0f %%", src.Health*100)), cli.Number(latency), state, or(v.budgets(src.Budgets)))
	}
	v.Table(t)
	v.Line("together %s in flight%s", inFlight(r.InFlight, r.Concurrency), after("; budgets: ", v.budgets(r.Budgets)))
	for _, g := range r.Groups {
		v.Line("group %s: %s in flight%s", g.Name, text.Thousands(g.InFlight), after("; budgets: ", v.budgets(g.Budgets)))
	}
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

// budgets returns how much of each unit budget is used: "day 61 % of 2,000".
func (v view) budgets(list []admission.BudgetState) string {
	var parts []string
	for _, b := range list {
		part := fmt.Sprintf("%s %s of %s", b.Period, text.Share(b.Spent+b.Reserved, b.Cap), text.Thousands(b.Cap))
		switch {
		case b.Missing:
			part = fmt.Sprintf("%s of %s, not counted yet", b.Period, text.Thousands(b.Cap))
		case b.Spent+b.Reserved >= b.Cap:
			part += ", used up until " + v.At(b.Resets)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func newHalts(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "halts",
		Short: "Which accounts are halted and why, and how many tasks wait",
		Example: `  inspect halts
  inspect halts --json
  inspect resume main/recognize --dry-run`,
		Args: cobra.NoArgs,
		RunE: a.run(needsRedis, func(ctx context.Context, s *session, _ []string) error {
			r, err := s.Sources.Halts(ctx)
			return s.show(r.Halts, err, func() { s.printHalts(r) })
		}),
	}
}

func newHalt(a *app) *cobra.Command {
	var r ops.HaltRequest
	cmd := &cobra.Command{
		Use:   "halt SOURCE/PATH… --why TEXT",
		Short: "Block all calls to an account until it is resumed",
		Long: `* stands for every source or path. Running calls finish. Tasks wait, unless they may use another account.
To stop a queue instead of an account: inspect pause.`,
		Example: `  inspect halt main/recognize --why "token leaked"
  inspect halt '*/upload' --why "catalog is being cleaned"
  inspect halt spare/* --why maintenance --probe-after 30m`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.run(needsRedis, func(ctx context.Context, s *session, args []string) error {
			r.Targets, r.By = args, s.by()
			halts, err := s.Sources.Halt(ctx, r)
			return s.show(halts.Halts, err, func() { s.printHalts(halts) })
		}),
	}
	cmd.Flags().StringVar(&r.Why, "why", "", "reason (required), shown by inspect halts, sources and why")
	cmd.Flags().DurationVar(&r.ProbeAfter, "probe-after", 0, "let one call probe the account after this time; 0 = only inspect resume ends the halt")
	return cmd
}

func (v view) printHalts(r ops.HaltsReport) {
	t := cli.Table{Head: []string{"SOURCE/PATH", "REASON", "SINCE", "BY", "TOKEN", "PROBE", "WAITING"}}
	for _, h := range r.Halts {
		probe := "on resume"
		if h.ProbeAt != nil {
			probe = v.Until(*h.ProbeAt)
		}
		t.Add(h.Source+"/"+string(h.Path), coloured(h.Reason, "halt"), v.Since(at(h.Since)), h.By, or(text.Short(h.RefusedToken, 9)), probe, h.Waiting)
	}
	if t.Empty() {
		v.Line("no account is halted")
	} else {
		v.Table(t)
	}
	if n := r.BlockedForAWhile; n > 0 {
		v.Line("%s blocked for a while by a throttle or breaker: inspect sources", text.Count(n, "other account is", "other accounts are"))
	}
}

func planResume(ctx context.Context, s *session, targets []string) error {
	r, err := s.Sources.ResumePlan(ctx, targets)
	return s.show(r.Sources, err, func() { s.printResume(r) })
}

func resumeSources(ctx context.Context, s *session, targets []string) error {
	r, err := s.Sources.Resume(ctx, targets, s.by())
	return s.show(r.Sources, err, func() {
		s.printResume(r)
		switch {
		case r.Open != "":
		case r.Workers == 0:
			s.Line("no worker runs on this Redis: the probe waits for one (worker run)")
		default:
			s.Line("follow it: inspect halts")
		}
	})
}

func (v view) printResume(r ops.ResumeReport) {
	if r.Open != "" {
		v.Line("nothing to resume: %s is neither halted nor has an open breaker", r.Open)
	}
	for _, src := range r.Sources {
		waiting := text.Count(src.Waiting, "waiting task", "waiting tasks")
		if src.DryRun {
			v.Line("%s/%s (%s): would probe with one waiting task, then run %s and replay %s archived because of the account; %s",
				src.Source, src.Path, src.Was, waiting, text.Thousands(*src.Archived), v.resumeCost(src))
			continue
		}
		v.Line("%s/%s (was %s) is half-open: a worker probes it with the first of %s", src.Source, src.Path, src.Was, waiting)
	}
}

func (v view) resumeCost(r ops.Resumed) string {
	if r.Units == nil {
		return "the units depend on the length of the recordings"
	}
	out := text.Count(*r.Units, "unit", "units") + ", " + v.money(*r.Units)
	if r.About != nil {
		out += ", about " + text.Span(time.Duration(*r.About*float64(time.Second)))
	}
	return out
}
