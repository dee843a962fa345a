package upkeep

import (
	"context"
	"time"

	"reprise/worker/record"
)

const drainInterval = 2 * time.Second

// OutboxDrain writes settlements from the outbox to SQL. Every worker runs
// one, so that the outbox empties as soon as any of them reaches SQL.
type OutboxDrain struct {
	Recorder *record.Recorder
	Warn     *record.Warner
}

// Run drains at once and every 2 s until ctx ends.
func (o OutboxDrain) Run(ctx context.Context) {
	o.drain(ctx)
	Every(ctx, drainInterval, o.drain)
}

func (o OutboxDrain) drain(ctx context.Context) {
	if err := o.Recorder.Drain(ctx); err != nil && ctx.Err() == nil {
		o.Warn.Warn("outbox", "the outbox cannot be drained yet", err)
	}
}
