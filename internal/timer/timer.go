// Package timer waits without keeping a stopped program from ending.
package timer

import (
	"context"
	"time"
)

// Wait returns nil after d, or the error of ctx when ctx ends first.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Every calls do after each interval until ctx ends. A call that takes longer than the interval delays the next one.
func Every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}
