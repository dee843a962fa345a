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

// storeInterval is how often Redis is told how far the store is.
const storeInterval = 2 * time.Second

// StoreWatch makes Redis remember how far the store is, and stops the worker when
// another process uses a copy of the store on the same Redis: results and bills would
// be split.
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
	ctx, cancel := context.WithTimeout(ctx, storeInterval)
	defer cancel()
	err := identity.Claim(ctx, s.Redis, s.Marks)
	if _, other := errors.AsType[*identity.MismatchError](err); other {
		s.Refuse(err)
		return
	}
	s.Warn.Warn(ctx, "store identity", "it cannot be checked which store Redis belongs to", err)
}
