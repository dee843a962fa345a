package admission

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Gates decides which calls may go. Safe for concurrent use. Acquire and
// Settle work without Run, but then permits are not renewed.
type Gates struct {
	rdb      redis.UniversalClient
	cfg      Config
	zone     *time.Location
	combiner *combiner
	waiters  *waitlist
	revision atomic.Int64
	met      atomic.Bool // Redis had limits once: one without them has lost everything

	mu      sync.Mutex
	permits map[string]*Permit // by attempt id: held, to be renewed
	late    map[string]lateOp  // by attempt id: settles whose answer never came
}

// New checks the configuration; it does not talk to Redis. The client should
// be admission's own, with few retries and short timeouts, so that a Redis in
// trouble is noticed within Config.Timeout.
func New(rdb redis.UniversalClient, cfg Config) (*Gates, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure admission: %w", err)
	}
	zone, err := time.LoadLocation(cfg.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("configure admission: load TimeZone: %w", err)
	}
	g := &Gates{rdb: rdb, cfg: cfg, zone: zone, waiters: newWaitlist(), permits: map[string]*Permit{}, late: map[string]lateOp{}}
	g.combiner = newCombiner(g.exchange)
	return g, nil
}

// Run seeds the limits, then renews the permits of this process and repeats
// unanswered settles until ctx ends. It returns nil; Redis in trouble is not
// an end, permits that could not be renewed stop being Valid by themselves.
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
		_ = g.renew(ctx, turn%10 == 0) // the permits themselves know when they were last confirmed
		g.repeatLate()
	}
}

// Close waits for operations under way; each ends within Config.Timeout or
// the client's own. Call it after the last Settle. The client stays open.
func (g *Gates) Close() error {
	g.combiner.wait()
	return nil
}
