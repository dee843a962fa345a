package record

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

// Entry is a settlement and the report of its attempt to the upload ledger. Writing an entry twice changes
// nothing.
type Entry struct {
	Settlement store.Settlement
	// Latch is the report of an upload's attempt, nil for none.
	Latch *idempotency.Conclusion
	// Verified is the result of recognizing an uncertain upload, nil for none.
	Verified *idempotency.Verification `json:",omitempty"`
}

// outbox has the settlements that wait in Redis until they are in SQL.
type outbox struct {
	rdb redis.UniversalClient
	log *slog.Logger
	// Hashes without TTL, in the hash slot of admission's keys.
	entries  string // settlement id → Entry as JSON
	ended    string // admission.EndedField → settlement id
	rejected string // settlement id → Entry as JSON, of those that the store refuses
}

func newOutbox(rdb redis.UniversalClient, prefix string, log *slog.Logger) outbox {
	return outbox{rdb: rdb, log: log, entries: prefix + "outbox", ended: admission.EndedKey(prefix), rejected: prefix + "outbox:rejected"}
}

// outboxMax is the largest number of settlements in the outbox. A full outbox refuses, and then no call is made,
// because its result could not be stored.
const outboxMax = 100_000

var (
	errOutboxFull = errors.New("the outbox is full")
	// errDrained means that a verdict left the outbox while it was read, because it is in SQL by now.
	errDrained = errors.New("the settlement moved to the store while it was read")
)

//go:embed outbox_put.lua
var putLua string

//go:embed outbox_drop.lua
var dropLua string

//go:embed outbox_forget.lua
var forgetLua string

var (
	putScript    = redis.NewScript(putLua)
	dropScript   = redis.NewScript(dropLua)
	forgetScript = redis.NewScript(forgetLua)
)

// put stores an entry, in place of an earlier entry with the same id. The id is the attempt's or, without a call,
// that of the task's generation.
func (o outbox) put(ctx context.Context, e Entry) error {
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
			id += "?" // a crash is presumed: it must not replace the attempt's own report
		}
	}
	n, err := putScript.Run(ctx, o.rdb, []string{o.entries, o.ended}, id, raw, field, s.Finished, outboxMax).Int()
	if err != nil {
		return fmt.Errorf("put a settlement into the outbox: %w", err)
	}
	if n == 0 {
		return errOutboxFull
	}
	return nil
}

// verdict returns the settlement that ended a key in this generation; found is false if there is none.
func (o outbox) verdict(ctx context.Context, key string, generation int64) (s store.Settlement, found bool, err error) {
	field := admission.EndedField(key, generation)
	id, err := o.rdb.HGet(ctx, o.ended, field).Result()
	if errors.Is(err, redis.Nil) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("read the outbox: %w", err)
	}
	raw, err := o.rdb.HGet(ctx, o.entries, id).Bytes()
	if errors.Is(err, redis.Nil) {
		return s, false, o.forget(ctx, field, id)
	}
	if err != nil {
		return s, false, fmt.Errorf("read the outbox: %w", err)
	}
	var e Entry
	if err := json.Unmarshal(raw, &e); err != nil {
		return s, false, fmt.Errorf("decode an outbox entry: %w", err)
	}
	return e.Settlement, true, nil
}

// forget drops a verdict whose settlement is missing, and returns errDrained. Drain drops both together once SQL
// has them. A verdict that is left over lost its settlement, because it was set aside or Redis lost it, and would
// keep its task from running indefinitely.
func (o outbox) forget(ctx context.Context, field, id string) error {
	n, err := forgetScript.Run(ctx, o.rdb, []string{o.entries, o.ended}, field, id).Int()
	switch {
	case err != nil:
		return fmt.Errorf("drop a verdict without its settlement: %w", err)
	case n > 0:
		o.log.Error("the settlement of a verdict in the outbox is missing; its task runs again", "field", field, "attempt", id, "set_aside", o.rejected)
	}
	return errDrained
}

// stored is an entry as it is in the outbox.
type stored struct {
	id, raw string
	entry   Entry // decoded by Drain; zero if it cannot be decoded
}

const pageSize = 200

// page reads some entries from a cursor on. A page may be empty before the end, which is the cursor 0.
func (o outbox) page(ctx context.Context, cursor uint64) ([]stored, uint64, error) {
	list, next, err := o.rdb.HScan(ctx, o.entries, cursor, "", pageSize).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("read the outbox: %w", err)
	}
	var page []stored
	for i := 0; i+1 < len(list); i += 2 {
		page = append(page, stored{id: list[i], raw: list[i+1]})
	}
	return page, next, nil
}

// drop removes entries that are in SQL, except those that changed meanwhile.
func (o outbox) drop(ctx context.Context, list []stored) error {
	if len(list) == 0 {
		return nil
	}
	var args []any
	for _, s := range list {
		args = append(args, s.id, s.raw, admission.EndedField(s.entry.Settlement.Key, s.entry.Settlement.Generation))
	}
	if err := dropScript.Run(ctx, o.rdb, []string{o.entries, o.ended}, args...).Err(); err != nil {
		return fmt.Errorf("drop drained outbox entries: %w", err)
	}
	return nil
}

// reject copies an entry that the store refuses to where an operator can find it.
func (o outbox) reject(ctx context.Context, s stored) error {
	if err := o.rdb.HSet(ctx, o.rejected, s.id, s.raw).Err(); err != nil {
		return fmt.Errorf("set a settlement aside: %w", err)
	}
	return nil
}

// length returns the number of settlements in the outbox.
func (o outbox) length(ctx context.Context) (int64, error) {
	n, err := o.rdb.HLen(ctx, o.entries).Result()
	if err != nil {
		return 0, fmt.Errorf("count the outbox: %w", err)
	}
	return n, nil
}
