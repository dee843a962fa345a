package upkeep

import (
	"context"
	"time"

	"reprise/internal/timer"
	"reprise/worker/record"
	"reprise/worker/warn"
)

const drainInterval = 2 * time.Second

// OutboxDrain writes the settlements of the outbox to SQL. Every worker has one, so that the outbox is empty soon
// after any worker can reach SQL.
type OutboxDrain struct {
	Recorder *record.Recorder
	Warn     *warn.Limiter
}

// Run drains at once and every 2 s until ctx ends.
func (o OutboxDrain) Run(ctx context.Context) {
	o.drain(ctx)
	timer.Every(ctx, drainInterval, o.drain)
}

func (o OutboxDrain) drain(ctx context.Context) {
	o.Warn.Warn(ctx, "outbox", "the outbox could not be written to the store; retrying", o.Recorder.Drain(ctx))
}
