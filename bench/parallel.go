package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// inParallel runs do for 0 … n-1 on so many goroutines and returns the first
// error of each.
func inParallel(goroutines, n int, do func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, goroutines)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[g] == nil; i = int(next.Add(1)) - 1 {
				errs[g] = do(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// pause waits, at most until ctx ends.
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

// until checks every 5 ms whether something holds, until ctx ends or the time
// limit is over.
func until(ctx context.Context, within time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
