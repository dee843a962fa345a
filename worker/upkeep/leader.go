package upkeep

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	leaderKey      = "reprise:{upkeep}:leader" // string with TTL: id of the leader
	leaderTerm     = 1500 * time.Millisecond
	leaderInterval = time.Second
)

// Leader elects one worker for the maintenance of what all share. It saves
// work and is no lock: every step of a leader is safe if two do it.
type Leader struct {
	rdb   redis.UniversalClient
	id    string
	leads atomic.Bool
}

// NewLeader takes part in the election under an id of its own.
func NewLeader(rdb redis.UniversalClient, id string) *Leader { return &Leader{rdb: rdb, id: id} }

// Leads reports whether this worker led when the lease was renewed last.
func (l *Leader) Leads() bool { return l.leads.Load() }

// Run takes and renews the lease until ctx ends.
func (l *Leader) Run(ctx context.Context) {
	Every(ctx, leaderInterval, func(ctx context.Context) { l.leads.Store(l.renew(ctx)) })
}

func (l *Leader) renew(ctx context.Context) bool {
	taken, err := l.rdb.SetNX(ctx, leaderKey, l.id, leaderTerm).Result()
	if err != nil || taken {
		return taken
	}
	holder, err := l.rdb.Get(ctx, leaderKey).Result()
	return err == nil && holder == l.id && l.rdb.PExpire(ctx, leaderKey, leaderTerm).Err() == nil
}
