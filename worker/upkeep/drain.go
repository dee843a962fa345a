package upkeep

import (
	"context"
	"time"

	"reprise/internal/timer"
	"reprise/worker/record"
	"reprise/worker/warn"
)

const drainInterval = 2 * time.Second

// OutboxDrain writes settlements from the outbox to SQL. Every worker runs
// one, so that the outbox empties as soon as any of them reaches SQL.
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
	o.Warn.Warn(ctx, "outbox", "the outbox cannot be drained yet", o.Recorder.Drain(ctx))
}
