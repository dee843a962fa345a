package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/ops"
)

func newCosts(a *app) *cobra.Command {
	var period periodFlags
	var by string
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "What calls used and cost, and what is unknown about it",
		Long: `Sums the calls of the store. An unknown price is never taken for 0: such units are listed apart, and so are calls that
may be billed without an answer of AudD that says so. Days are those of time_zone.`,
		Example: `  inspect costs
  inspect costs --since 7d --by source
  inspect costs --since 2026-11-01 --until 2026-12-01 --by path --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), needsStore, func(ctx context.Context, s *session) error {
				since, until, err := period.read(s.Times)
				if err != nil {
					return err
				}
				if until.IsZero() {
					until = s.Now.Add(time.Minute)
				}
				r, err := s.Costs.Report(ctx, ops.CostBy(by), since, until)
				if err != nil {
					return err
				}
				return s.show(r, func() error { return s.printCosts(r) })
			})
		},
	}
	period.add(cmd, "calls that ended", "30d")
	cmd.Flags().StringVar(&by, "by", "day", "a row per day, source, path, group or outcome")
	return cmd
}

func (s *session) printCosts(r ops.CostReport) error {
	if r.Total.Calls == 0 {
		s.Line("no calls since %s", at(r.Since).In(s.Zone).Format("2006-01-02 15:04"))
		return nil
	}
	t := cli.Table{Head: []string{string(r.By), "CALLS", "UNITS", "COST", "UNPRICED UNITS", "POSSIBLY BILLED"}}
	for _, c := range append(r.Rows, r.Total) {
		t.Add(cli.Text(text.Printable(c.Of)), cli.Number(text.Thousands(c.Calls)), cli.Number(text.Thousands(c.Units)), cli.Number(c.Money()),
			numberOr(c.UnpricedUnits), numberOr(c.PossiblyBilled))
	}
	if err := s.Table(t); err != nil {
		return err
	}
	for _, gap := range r.Gaps {
		s.Line("unknown: %s", gap)
	}
	return nil
}
