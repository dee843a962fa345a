package worker

import (
	"context"
	"time"

	"reprise/internal/timer"
	"reprise/tasks"
	"reprise/worker/warn"
)

// slot is where a delivery waits. It occupies its slot meanwhile, so the backlog stays pending in the queue, where
// the web UI shows it. Safe for concurrent use.
type slot struct {
	longest  time.Duration                  // of one wait
	callTime func(tasks.Path) time.Duration // left for the call that follows
	stopping context.Context                //nolint:containedctx // done: waits end at once
	waits    *waits
	warn     *warn.Limiter
}

// until returns when a delivery's wait must end: after longest, and early enough that asynq's deadline cannot end
// the call that follows.
func (s *slot) until(d *delivery) time.Time {
	until := time.Now().Add(s.longest)
	if d.deadline.IsZero() {
		return until
	}
	if latest := d.deadline.Add(-s.callTime(d.payload.Path) - settleMargin); latest.Before(until) {
		return latest
	}
	return until
}

// wait calls run and cancels it at until, or earlier when the worker stops. The delivery ends if the worker stops
// or ctx ends.
func (s *slot) wait(ctx context.Context, d *delivery, until time.Time, cause string, run func(context.Context) error) *ending {
	defer s.waits.begin(d, cause)()
	waitCtx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	err := run(waitCtx)
	switch {
	case ctx.Err() != nil:
		return without(tasks.Interrupted, 0, "the delivery was cancelled before the call")
	case err != nil && s.stopping.Err() != nil:
		return without(tasks.Interrupted, 0, "the worker stopped before the call")
	}
	return nil
}

// pause waits for a time, at most until the given one.
func (s *slot) pause(ctx context.Context, d *delivery, until time.Time, cause string, wait time.Duration) *ending {
	return s.wait(ctx, d, until, cause, func(ctx context.Context) error { return timer.Wait(ctx, wait) })
}

// downMin and downMax bound the backoff between two tries while the store or admission is down.
const (
	downMin = 250 * time.Millisecond
	downMax = 5 * time.Second
)

// retry repeats do until it succeeds. It ends the delivery as store_down when the slot's longest wait is over.
// failure says for the log what fails.
func (s *slot) retry(ctx context.Context, d *delivery, failure string, do func(context.Context) error) *ending {
	until := s.until(d)
	for backoff := downMin; ; backoff = min(2*backoff, downMax) {
		err := do(ctx)
		if err == nil {
			return nil
		}
		s.warn.Warn(ctx, failure, failure+"; tasks wait", err)
		if time.Now().Add(backoff).After(until) {
			return without(tasks.StoreDown, 0, failure)
		}
		if end := s.pause(ctx, d, until, causeStore, backoff); end != nil {
			return end
		}
	}
}
