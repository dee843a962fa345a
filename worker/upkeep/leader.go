package upkeep

import (
	"context"
	_ "embed"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/internal/timer"
)

const (
	leaderTerm     = 1500 * time.Millisecond
	leaderInterval = time.Second
)

//go:embed leader.lua
var leaderLua string

var leaderScript = redis.NewScript(leaderLua)

// Leader elects one worker for the jobs that one worker can do for all. It saves work and is no lock: every
// step of a leader is safe if two workers do it.
type Leader struct {
	rdb   redis.UniversalClient
	id    string
	until atomic.Pointer[time.Time] // end of the lease
}

// NewLeader returns a candidate. id names the worker and is unique.
func NewLeader(rdb redis.UniversalClient, id string) *Leader {
	l := &Leader{rdb: rdb, id: id}
	l.until.Store(&time.Time{})
	return l
}

// Leads reports whether this worker has the lease. The lease counts from before the request that renewed it, so
// it ends on time although a later renewal hangs.
func (l *Leader) Leads() bool { return time.Now().Before(*l.until.Load()) }

// Run takes and renews the lease until ctx ends.
func (l *Leader) Run(ctx context.Context) {
	timer.Every(ctx, leaderInterval, func(ctx context.Context) {
		until := time.Now().Add(leaderTerm)
		leads, err := leaderScript.Run(ctx, l.rdb, []string{leaderKey}, l.id, leaderTerm.Milliseconds()).Bool()
		if err == nil && leads {
			l.until.Store(&until)
		}
	})
}

// every runs do once per interval while this worker leads, until ctx ends.
func (l *Leader) every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	timer.Every(ctx, interval, func(ctx context.Context) {
		if l.Leads() {
			do(ctx)
		}
	})
}
