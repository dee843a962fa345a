package admission

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Gates decides which calls are admitted. It is safe for concurrent use. Acquire and Settle work without Run, but permits
// are not renewed then.
type Gates struct {
	scripts
	cfg       Config
	zone      *time.Location
	batcher   *batcher
	waiters   *waitlist
	hadLimits atomic.Bool // Redis had limits once: if it has none now, it has lost its data

	mu         sync.Mutex
	permits    map[string]*Permit    // by attempt id: held, to be renewed
	unanswered map[string]unanswered // by attempt id: settles to be repeated
}

// New checks the configuration and does not call Redis. The client should be admission's own, with few retries and short
// timeouts, so that an unavailable Redis is noticed within Config.Timeout.
func New(rdb redis.UniversalClient, cfg Config) (*Gates, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure admission: %w", err)
	}
	zone, err := time.LoadLocation(cfg.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("configure admission: load time_zone: %w", err)
	}
	g := &Gates{
		scripts: scripts{rdb, cfg.Prefix}, cfg: cfg, zone: zone, waiters: newWaitlist(),
		permits: map[string]*Permit{}, unanswered: map[string]unanswered{},
	}
	g.batcher = newBatcher(g.exchange)
	return g, nil
}

// Run seeds the limits. It then renews the permits of this process and repeats unanswered settles until ctx ends, and
// returns nil. While Redis is unavailable it goes on, and permits stop being Valid.
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
		_ = g.renew(ctx, turn%10 == 0) // each permit has the time of its last confirmation
		g.repeatUnanswered()
	}
}

// Close waits for the running operations, each of which ends within Config.Timeout or the client's own timeout. Call it
// after the last Settle. It does not close the client.
func (g *Gates) Close() error {
	g.batcher.idle.Wait()
	return nil
}

// run runs a script within Config.Timeout.
func (g *Gates) run(ctx context.Context, s *redis.Script, request, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	return g.scripts.run(ctx, s, request, reply)
}
