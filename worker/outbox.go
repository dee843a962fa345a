package worker

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

// outbox keeps settlements in Redis while SQL cannot take them (spec R22), so
// that no paid result is lost and no finished task runs again. Any worker
// drains it. Safe for concurrent use.
type outbox struct {
	rdb     redis.UniversalClient
	keys    outboxKeys
	records Records
	uploads *uploads
	warn    *warner
	down    atomic.Int64 // Unix ms until which the store is not tried first
}

// outboxKeys are hashes without TTL beside admission's keys.
type outboxKeys struct {
	entries  string // settlement id → settlement as JSON, until it is in SQL
	ended    string // admission.EndedField → settlement id, as long
	rejected string // as entries: what no store will ever take; a person finds out what was wrong
}

func outboxUnder(prefix string) outboxKeys {
	return outboxKeys{entries: prefix + "outbox", ended: admission.EndedKey(prefix), rejected: prefix + "outbox:rejected"}
}

// outboxMax is the number of settlements the outbox takes. A full outbox
// refuses, and with it admission closes: what cannot be kept is not called.
const outboxMax = 100_000

// storeRest is how long the store is left alone after it failed.
const storeRest = time.Second

var errOutboxFull = errors.New("the outbox is full")

// errDrained sends a delivery that read SQL too early back to the queue: what
// ended its task has moved from the outbox to SQL since.
var errDrained = errors.New("the settlement moved to the store in between")

//go:embed outbox_put.lua
var outboxPutLua string

//go:embed outbox_drop.lua
var outboxDropLua string

//go:embed outbox_forget.lua
var outboxForgetLua string

var (
	outboxPut    = redis.NewScript(outboxPutLua)
	outboxDrop   = redis.NewScript(outboxDropLua)
	outboxForget = redis.NewScript(outboxForgetLua)
)

func (o *outbox) storeUsable() bool { return time.Now().UnixMilli() >= o.down.Load() }

func (o *outbox) storeFailed() { o.down.Store(time.Now().Add(storeRest).UnixMilli()) }

// entry is a settlement and, for an upload, what its attempt reports to the
// ledger. Both are idempotent.
type entry struct {
	Settlement store.Settlement
	Latch      *idempotency.Conclusion
}

// write stores entries in SQL: the ledger first, because a send that is not
// concluded holds its key, while an unsettled task is only looked at again.
func (o *outbox) write(ctx context.Context, entries ...entry) error {
	settlements := make([]store.Settlement, 0, len(entries))
	for _, e := range entries {
		settlements = append(settlements, e.Settlement)
		if e.Latch == nil {
			continue
		}
		_, err := o.uploads.ledger.Conclude(ctx, e.Settlement.Call.AttemptID, *e.Latch)
		switch {
		case errors.Is(err, idempotency.ErrUnknownAttempt), errors.Is(err, idempotency.ErrInvalid):
			// A restored ledger does not know the send, and never will: what came
			// of it is stored all the same, and the ledger is adopted by a person.
			o.warn.log.Error("the upload ledger does not take what came of a send", "attempt", e.Settlement.Call.AttemptID,
				"task_id", e.Settlement.Key, "effect", string(e.Latch.Effect), "error", err)
		case err != nil:
			return err
		}
	}
	if len(settlements) == 0 {
		return nil
	}
	return o.records.Settle(ctx, settlements...)
}

// put keeps one entry; repeating it is harmless.
func (o *outbox) put(ctx context.Context, e entry) error {
	s := e.Settlement
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode a settlement for the outbox: %w", err)
	}
	field := admission.EndedField(s.Key, s.Generation)
	id := field
	if s.Call != nil {
		id = s.Call.AttemptID
		if s.Call.Outcome == tasks.Crash {
			id += "?" // presumed by somebody else: it never replaces the attempt's own report
		}
	}
	finished := 0
	if s.Finished {
		finished = 1
	}
	n, err := outboxPut.Run(ctx, o.rdb, []string{o.keys.entries, o.keys.ended}, id, raw, field, finished, outboxMax).Int()
	if err != nil {
		return fmt.Errorf("put a settlement into the outbox: %w", err)
	}
	if n == 0 {
		return errOutboxFull
	}
	return nil
}

// ended finds the settlement that ended a key in this generation.
func (o *outbox) ended(ctx context.Context, key string, generation int64) (store.Settlement, bool, error) {
	var s store.Settlement
	var e entry
	id, err := o.rdb.HGet(ctx, o.keys.ended, admission.EndedField(key, generation)).Result()
	if errors.Is(err, redis.Nil) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("read the outbox: %w", err)
	}
	raw, err := o.rdb.HGet(ctx, o.keys.entries, id).Bytes()
	if errors.Is(err, redis.Nil) {
		return s, false, o.forget(ctx, admission.EndedField(key, generation), id)
	}
	if err != nil {
		return s, false, fmt.Errorf("read the outbox: %w", err)
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return s, false, fmt.Errorf("decode an outbox entry: %w", err)
	}
	return e.Settlement, true, nil
}

// forget is for a verdict whose entry is not there. Both go together when they
// are in SQL; a verdict that is left alone lost its entry (it was set aside, or
// Redis lost it), and would keep its task out for ever.
func (o *outbox) forget(ctx context.Context, field, id string) error {
	n, err := outboxForget.Run(ctx, o.rdb, []string{o.keys.entries, o.keys.ended}, field, id).Int()
	if err != nil {
		return fmt.Errorf("read the outbox: %w", err)
	}
	if n > 0 {
		o.warn.log.Error("a verdict lost its settlement; its task runs again", "field", field, "attempt", id, "set_aside", o.keys.rejected)
	}
	return errDrained
}

// length is the number of settlements waiting.
func (o *outbox) length(ctx context.Context) (int64, error) {
	n, err := o.rdb.HLen(ctx, o.keys.entries).Result()
	if err != nil {
		return 0, fmt.Errorf("count the outbox: %w", err)
	}
	return n, nil
}

const drainPage = 200

// drain writes waiting settlements to SQL, a page at a time, and drops each
// only when it is still the entry that was written.
func (o *outbox) drain(ctx context.Context) error {
	var cursor uint64
	for {
		// A page may be empty before the end: only the cursor says where that is.
		page, next, err := o.rdb.HScan(ctx, o.keys.entries, cursor, "", drainPage).Result()
		if err != nil {
			return fmt.Errorf("read the outbox: %w", err)
		}
		drop, err := o.writePage(ctx, page)
		if err != nil {
			if store.IsUnavailable(err) {
				o.storeFailed()
			}
			return fmt.Errorf("write the outbox to the store: %w", err)
		}
		if len(drop) > 0 {
			if err := outboxDrop.Run(ctx, o.rdb, []string{o.keys.entries, o.keys.ended}, drop...).Err(); err != nil {
				return fmt.Errorf("drop drained outbox entries: %w", err)
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

const drainEvery = 2 * time.Second

// run drains until ctx ends.
func (o *outbox) run(ctx context.Context) {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		if err := o.drain(ctx); err != nil && ctx.Err() == nil {
			o.warn.do("outbox", "the outbox cannot be drained yet", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
