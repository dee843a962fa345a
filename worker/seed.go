package worker

import (
	"context"
	"fmt"

	"reprise/admission"
	"reprise/store"
)

// seed writes unit budgets that are missing in Redis (a new day, or a Redis
// that lost them) from what the call rows say was used. Until then nothing is
// admitted (spec R13).
func (w *Worker) seed(ctx context.Context, missing *admission.MissingPeriods) error {
	// Rows that wait in the outbox are not in SQL yet.
	if err := w.outbox.drain(ctx); err != nil {
		return err
	}
	var found []admission.PeriodUnits
	for _, p := range missing.Periods {
		spent, err := w.records.Spent(ctx, store.Spending{Since: p.Start, Until: p.End, Source: p.Source, Path: p.Path, Group: p.Group})
		if err != nil {
			return fmt.Errorf("sum the units of a lost budget: %w", err)
		}
		found = append(found, admission.PeriodUnits{Period: p, Spent: spent})
	}
	if _, err := w.gates.Seed(ctx, found...); err != nil {
		return err
	}
	w.log.Info("unit budgets were seeded from the call rows", "budgets", len(found))
	return nil
}
