package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Gates decides which calls are admitted. Safe for concurrent use. Acquire and Settle
// work without Run, but then permits are not renewed.
type Gates struct {
	rdb       redis.UniversalClient
	cfg       Config
	zone      *time.Location
	batcher   *batcher
	waiters   *waitlist
	hadLimits atomic.Bool // Redis had limits once: without them it has lost its data

	mu         sync.Mutex
	permits    map[string]*Permit    // by attempt id: held, to be renewed
	unanswered map[string]unanswered // by attempt id: settles to be repeated
}

// unanswered is a settle to be repeated.
type unanswered struct {
	settle *settleRequest
	since  time.Time
}

// run is runScript within Config.Timeout.
func (g *Gates) run(ctx context.Context, s *redis.Script, request, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	return runner{g.rdb, g.cfg.Prefix}.run(ctx, s, request, reply)
}
