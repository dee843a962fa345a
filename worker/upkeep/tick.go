package upkeep

import (
	"context"
	"time"
)

// Every runs do once per interval until ctx ends.
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
