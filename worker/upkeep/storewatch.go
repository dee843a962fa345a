package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/internal/timer"
	"reprise/store/identity"
	"reprise/worker/warn"
)

// storeInterval is how often Redis gets the mark of the store.
const storeInterval = 2 * time.Second

// StoreWatch writes to Redis how far the store is. It stops the worker when another process uses a copy of the store on
// the same Redis, because results and bills would then be in two stores.
type StoreWatch struct {
	Redis  redis.UniversalClient
	Marks  identity.Marks
	Refuse func(error) // stops the worker
	Warn   *warn.Limiter
}

// Run watches until ctx ends.
func (s StoreWatch) Run(ctx context.Context) {
	s.claim(ctx)
	timer.Every(ctx, storeInterval, s.claim)
}

func (s StoreWatch) claim(ctx context.Context) {
	claimCtx, cancel := context.WithTimeout(ctx, storeInterval)
	defer cancel()
	err := identity.Claim(claimCtx, s.Redis, s.Marks)
	if _, other := errors.AsType[*identity.MismatchError](err); other {
		s.Refuse(err)
		return
	}
	s.Warn.Warn(ctx, "store identity", "the store that Redis belongs to cannot be read; retrying", err)
}
