package worker

import (
	"context"
	"fmt"
	"time"

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
		spent, err := w.records.Spent(ctx, store.SpentFilter{Since: p.Start, Until: p.End, Source: p.Source, Path: p.Path, Group: p.Group})
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

const (
	// recalled is how far back recall looks: no unit budget is longer.
	recalled = 31 * 24 * time.Hour
	// recallTimeout bounds it: a store that takes longer has many calls.
	recallTimeout = 2 * time.Second
)

// recall tells admission whether calls were made before this worker started, or
// whether that cannot be told. Then a Redis without limits is not new, and calls
// of other workers may be under way that it has forgotten.
func (w *Worker) recall(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, recallTimeout)
	defer cancel()
	spent, err := w.records.Spent(ctx, store.SpentFilter{Since: w.now().Add(-recalled)})
	if err != nil || spent > 0 {
		w.gates.ExpectLimits()
	}
}
