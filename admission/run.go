package admission

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// New checks the configuration; it does not call Redis. The client should be
// admission's own, with few retries and short timeouts, so that an unavailable Redis
// is noticed within Config.Timeout.
func New(rdb redis.UniversalClient, cfg Config) (*Gates, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure admission: %w", err)
	}
	zone, err := time.LoadLocation(cfg.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("configure admission: load TimeZone: %w", err)
	}
	g := &Gates{rdb: rdb, cfg: cfg, zone: zone, waiters: newWaitlist(), permits: map[string]*Permit{}, unanswered: map[string]unanswered{}}
	g.batcher = newBatcher(g.exchange)
	return g, nil
}

// Run seeds the limits, then renews the permits of this process and repeats unanswered
// settles until ctx ends. It returns nil. It does not end while Redis is unavailable:
// permits that cannot be renewed stop being Valid.
func (g *Gates) Run(ctx context.Context) error {
	tick := time.NewTicker(g.cfg.RenewEvery)
	defer tick.Stop()
	_, seeded := g.SeedLimits(ctx)
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if seeded != nil {
			_, seeded = g.SeedLimits(ctx)
		}
		_ = g.renew(ctx, turn%10 == 0) // each permit knows when it was last confirmed
		g.repeatUnanswered()
	}
}

// Close waits for the operations under way; each ends within Config.Timeout or the
// client's own. Call it after the last Settle. The client stays open.
func (g *Gates) Close() error {
	g.batcher.wait()
	return nil
}
