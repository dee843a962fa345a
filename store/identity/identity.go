// Package identity keeps in Redis which store its queue belongs to, so that a
// worker, a producer or an operator with another store, an empty one or an older
// copy is refused. Work that the right store has as paid would be paid again.
package identity

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"reprise/store"
)

// MismatchError says that the store is not the one that Redis remembers, or an
// older or diverged copy of it.
type MismatchError struct {
	Remembered, Found store.Identity
}

func (e *MismatchError) Error() string {
	const adopt = "or stop all workers and accept this one with `inspect store adopt`"
	if e.Remembered.ID != e.Found.ID {
		return fmt.Sprintf("the queue in Redis belongs to another store: %s (id %.8s), not to %s (id %.8s): set the store URL to that one, %s",
			e.Remembered.Name, e.Remembered.ID, e.Found.Name, e.Found.ID, adopt)
	}
	return fmt.Sprintf("the store %s is an older copy: it lacks what was stored later in %s (mark %d): set the store URL to that one, %s; what is missing may be paid again",
		e.Found.Name, e.Remembered.Name, e.Remembered.Seq, adopt)
}

// Marks are those of a store: store.Marks.
type Marks interface {
	Identity(ctx context.Context) (store.Identity, error)
	Has(ctx context.Context, of store.Identity) (bool, error)
	Set(ctx context.Context, anew bool) error
}

// key is a hash: id, seq, token and name. No TTL.
const key = "reprise:{store}:identity"

//go:embed claim.lua
var claimLua string

var claimScript = redis.NewScript(claimLua)

// Read returns the store and mark that Redis remembers; a zero Identity if there
// is none.
func Read(ctx context.Context, rdb redis.UniversalClient) (remembered store.Identity, err error) {
	h, err := rdb.HGetAll(ctx, key).Result()
	if err != nil {
		return remembered, fmt.Errorf("read which store Redis belongs to: %w", err)
	}
	if len(h) == 0 {
		return remembered, nil
	}
	seq, err := strconv.ParseInt(h["seq"], 10, 64)
	if err != nil {
		return remembered, fmt.Errorf("read which store Redis belongs to: %w", err)
	}
	return store.Identity{ID: h["id"], Seq: seq, Token: h["token"], Name: h["name"]}, nil
}

// Check compares the store with the one that Redis remembers and changes nothing.
// The error is a *MismatchError if it is another one or lacks the mark.
func Check(ctx context.Context, rdb redis.UniversalClient, marks Marks) error {
	_, err := check(ctx, rdb, marks)
	return err
}

// check returns what Redis remembers, also with a *MismatchError. It reads Redis
// first, because a mark is committed before Redis remembers it.
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

// Claim is Check, and makes Redis remember the store with its latest mark. Call it
// at start, at the end and regularly between, because a copy that is written to
// differs only from the next mark on.
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

// Adopt makes Redis remember this store in place of another one or of an older
// mark. It returns what Redis remembered before.
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

// remember stores the latest mark, unless Redis no longer has what was read before:
// the mark of the process that was faster is checked the next time.
func remember(ctx context.Context, rdb redis.UniversalClient, marks Marks, remembered store.Identity) error {
	own, err := marks.Identity(ctx)
	if err != nil || own == remembered {
		return err
	}
	if err := claimScript.Run(ctx, rdb, []string{key}, own.ID, own.Seq, own.Token, own.Name, remembered.ID, remembered.Token).Err(); err != nil {
		return fmt.Errorf("remember which store Redis belongs to: %w", err)
	}
	return nil
}
