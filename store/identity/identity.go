// Package identity stores in Redis which SQL store the queue belongs to. A worker, producer or operator with another
// store, an empty store or an older copy gets an error. With such a store, work that is already paid would be paid
// again.
package identity

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"reprise/store"
)

// MismatchError means that the store is not the one that Redis has stored, or is an older or diverged copy of it.
type MismatchError struct {
	Remembered, Found store.Identity
}

func (e *MismatchError) Error() string {
	const adopt = "or stop all workers and run `inspect store adopt` to use this store"
	if e.Remembered.ID != e.Found.ID {
		return fmt.Sprintf("the queue in Redis belongs to another store: %s (id %.8s), not to %s (id %.8s): set the store URL to the queue's store, %s",
			e.Remembered.Name, e.Remembered.ID, e.Found.Name, e.Found.ID, adopt)
	}
	return fmt.Sprintf("the store %s is an older copy: it lacks data that was stored later in %s (mark %d): set the store URL to the newer store, %s; missing results may be billed again",
		e.Found.Name, e.Remembered.Name, e.Remembered.Seq, adopt)
}

// Marks is implemented by store.Marks.
type Marks interface {
	Identity(ctx context.Context) (store.Identity, error)
	Has(ctx context.Context, of store.Identity) (bool, error)
	Set(ctx context.Context, anew bool) error
}

// key is a hash with the fields id, seq, token and name. It has no TTL.
const key = "reprise:{store}:identity"

//go:embed claim.lua
var claimLua string

var claimScript = redis.NewScript(claimLua)

// Read returns the store and mark that Redis has stored, or a zero Identity if there is none.
func Read(ctx context.Context, rdb redis.UniversalClient) (remembered store.Identity, err error) {
	h, err := rdb.HGetAll(ctx, key).Result()
	if err != nil {
		return remembered, fmt.Errorf("read the store identity from Redis: %w", err)
	}
	if len(h) == 0 {
		return remembered, nil
	}
	seq, err := strconv.ParseInt(h["seq"], 10, 64)
	if err != nil {
		return remembered, fmt.Errorf("read the store identity from Redis: %w", err)
	}
	return store.Identity{ID: h["id"], Seq: seq, Token: h["token"], Name: h["name"]}, nil
}

// Check compares the store with the one that Redis has stored, and changes nothing. It returns a *MismatchError if
// the ids differ or the store lacks the mark.
func Check(ctx context.Context, rdb redis.UniversalClient, marks Marks) error {
	_, err := check(ctx, rdb, marks)
	return err
}

// check returns the Identity that Redis has stored, also with a *MismatchError. It reads Redis before the store,
// because a mark is committed to the store before Redis stores it.
func check(ctx context.Context, rdb redis.UniversalClient, marks Marks) (remembered store.Identity, err error) {
	remembered, err = Read(ctx, rdb)
	if err != nil || remembered.ID == "" {
		return remembered, err
	}
	has, err := marks.Has(ctx, remembered)
	if err != nil || has {
		return remembered, err
	}
	own, err := marks.Identity(ctx)
	if err == nil {
		err = &MismatchError{Remembered: remembered, Found: own}
	}
	return remembered, err
}

// Claim runs Check and then stores the store's latest mark in Redis. Call it at start, at the end and regularly in
// between. A copy of the store can only be told apart after the original's next mark.
func Claim(ctx context.Context, rdb redis.UniversalClient, marks Marks) error {
	remembered, err := check(ctx, rdb, marks)
	if err != nil {
		return err
	}
	if err := marks.Set(ctx, false); err != nil {
		return err
	}
	return remember(ctx, rdb, marks, remembered)
}

// Adopt stores this store's identity in Redis, in place of another store or an older mark. It returns the identity
// that it replaced.
func Adopt(ctx context.Context, rdb redis.UniversalClient, marks Marks) (store.Identity, error) {
	remembered, err := Read(ctx, rdb)
	if err != nil {
		return remembered, err
	}
	if err := marks.Set(ctx, true); err != nil {
		return remembered, err
	}
	return remembered, remember(ctx, rdb, marks, remembered)
}

// remember stores the latest mark in Redis. It does nothing if another process has changed the stored identity since
// it was read. The next Check then checks the mark of that process.
func remember(ctx context.Context, rdb redis.UniversalClient, marks Marks, remembered store.Identity) error {
	own, err := marks.Identity(ctx)
	if err != nil || own == remembered {
		return err
	}
	if err := claimScript.Run(ctx, rdb, []string{key}, own.ID, own.Seq, own.Token, own.Name, remembered.ID, remembered.Token).Err(); err != nil {
		return fmt.Errorf("write the store identity to Redis: %w", err)
	}
	return nil
}
