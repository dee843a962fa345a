package upkeep

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"reprise/admission"
	"reprise/store"
	"reprise/worker/record"
)

// Seeder restores unit budgets that are missing in Redis, because a new day has begun or Redis lost them. Safe
// for concurrent use.
type Seeder struct {
	Gates    *admission.Gates
	Store    Store
	Recorder *record.Recorder
	Log      *slog.Logger
}

// Seed writes the missing budgets from the call rows. Admission grants nothing before.
func (s Seeder) Seed(ctx context.Context, missing *admission.MissingPeriods) error {
	if err := s.Recorder.Drain(ctx); err != nil { // SQL does not have the call rows of the outbox
		return err
	}
	var found []admission.PeriodUnits
	for _, p := range missing.Periods {
		spent, err := s.Store.Spent(ctx, store.CallFilter{Since: p.Start, Until: p.End, Source: p.Source, Path: p.Path, Group: p.Group})
		if err != nil {
			return fmt.Errorf("sum the units of a lost budget: %w", err)
		}
		found = append(found, admission.PeriodUnits{Period: p, Spent: spent})
	}
	if _, err := s.Gates.Seed(ctx, found...); err != nil {
		return err
	}
	s.Log.Info("unit budgets were seeded from the call rows", "budgets", len(found))
	return nil
}

const (
	// historyWindow is how far back ExpectLimits reads: no unit budget is longer.
	historyWindow = 31 * 24 * time.Hour
	// historyTimeout bounds the read. A store that takes longer has many calls.
	historyTimeout = 2 * time.Second
)

// ExpectLimits tells admission that Redis must have limits if calls were made before this worker started, or if
// that is unknown. A Redis without limits has then lost them, and other workers' calls may be in flight.
func (s Seeder) ExpectLimits(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	spent, err := s.Store.Spent(ctx, store.CallFilter{Since: time.Now().Add(-historyWindow)})
	if err != nil || spent > 0 {
		s.Gates.ExpectLimits()
	}
}
