package main

import (
	"context"
	"time"
)

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// until checks every 5 ms whether a condition holds, for at most within.
func until(ctx context.Context, within time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !holds() {
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
