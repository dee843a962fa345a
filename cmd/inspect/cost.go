package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/ops"
)

func newCosts(a *app) *cobra.Command {
	var period periodFlags
	var by string
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "What calls used and cost, and which costs are unknown",
		Long: `Sums the calls in the store. Units of unknown price are counted separately, and so are calls without a
response that AudD may have billed. The setting time_zone decides where a day starts.`,
		Example: `  inspect costs
  inspect costs --since 7d --by source
  inspect costs --since 2026-11-01 --until 2026-12-01 --by path --json`,
		Args: cobra.NoArgs,
		RunE: a.run(needsStore, func(ctx context.Context, s *session, _ []string) error {
			since, until, err := period.read(s.Times)
			if err != nil {
				return err
			}
			if until.IsZero() {
				until = s.Now.Add(time.Minute)
			}
			r, err := s.Costs.Report(ctx, ops.CostBy(by), since, until)
			return s.show(r, err, func() { s.printCosts(r) })
		}),
	}
	period.add(cmd, "calls that ended", "30d")
	cmd.Flags().StringVar(&by, "by", "day", "one row per day, source, path, group or outcome")
	return cmd
}

func (v view) printCosts(r ops.CostReport) {
	if r.Total.Calls == 0 {
		v.Line("no calls since %s", at(r.Since).In(v.Zone).Format("2006-01-02 15:04"))
		return
	}
	t := cli.Table{Head: []string{string(r.By), "CALLS", "UNITS", "COST", "UNPRICED UNITS", "POSSIBLY BILLED"}}
	for _, c := range append(r.Rows, r.Total) {
		t.Add(c.Of, c.Calls, c.Units, cli.Number(c.Money()), numberOr(c.UnpricedUnits), numberOr(c.PossiblyBilled))
	}
	v.Table(t)
	for _, gap := range r.Gaps {
		v.Line("unknown: %s", gap)
	}
}
