package main

import (
	"context"
	"time"

	"reprise/internal/timer"
)

// until checks every 5 ms whether a condition holds, for at most within.
func until(ctx context.Context, within time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !holds() {
		if err := timer.Wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
