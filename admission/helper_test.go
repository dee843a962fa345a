package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
	"reprise/tasks"
)

// bench has Gates with their own Redis database.
type bench struct {
	*Gates
	t   testing.TB
	rdb *redis.Client
}

func newBench(t testing.TB, change func(*Config)) *bench {
	t.Helper()
	return benchOn(t, redistest.DB(t), change)
}

func benchOn(t testing.TB, rdb *redis.Client, change func(*Config)) *bench {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Timeout = cfg.PermitTTL - trustMargin // a busy machine must not fail a test
	if change != nil {
		change(&cfg)
	}
	g, err := New(rdb, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	return &bench{Gates: g, t: t, rdb: rdb}
}

// oneSource sets the limits of the recognize path.
func oneSource(l Limits) func(*Config) {
	return func(c *Config) { c.Paths = map[tasks.Path]Limits{tasks.Recognize: l} }
}

var attempts atomic.Int64

func request(key string) Request {
	return Request{
		Key: key, AttemptID: "attempt-" + strconv.FormatInt(attempts.Add(1), 10), Path: tasks.Recognize, Units: 1, UnitsBounded: true,
	}
}

func (b *bench) key(name string) string { return b.cfg.Prefix + name }

func (b *bench) pauses() *Pauses { return NewPauses(b.rdb, b.cfg.Prefix) }

func (b *bench) acquire(r Request) *Permit {
	b.t.Helper()
	p, err := b.Acquire(context.Background(), r)
	require.NoError(b.t, err)
	return p
}

func (b *bench) refused(r Request) *Refusal {
	b.t.Helper()
	_, err := b.Acquire(context.Background(), r)
	var ref *Refusal
	require.ErrorAs(b.t, err, &ref)
	return ref
}

func (b *bench) settle(p *Permit, s CallReport) {
	b.t.Helper()
	require.NoError(b.t, b.Settle(context.Background(), p, s))
}

func (b *bench) field(hash, field string) string {
	b.t.Helper()
	v, err := b.rdb.HGet(context.Background(), b.key(hash), field).Result()
	if errors.Is(err, redis.Nil) {
		return ""
	}
	require.NoError(b.t, err)
	return v
}

// rec returns one field of a task's record, or "" if the field is absent.
func (b *bench) rec(key, field string) string {
	b.t.Helper()
	text, err := b.rdb.Get(context.Background(), b.key("task:"+key)).Result()
	if errors.Is(err, redis.Nil) {
		return ""
	}
	require.NoError(b.t, err)
	record := map[string]any{}
	require.NoError(b.t, json.Unmarshal([]byte(text), &record))
	if record[field] == nil {
		return ""
	}
	return fmt.Sprint(record[field])
}

func (b *bench) num(hash, field string) int64 {
	n, _ := strconv.ParseInt(b.field(hash, field), 10, 64)
	return n
}

func (b *bench) set(hash string, pairs ...any) {
	b.t.Helper()
	require.NoError(b.t, b.rdb.HSet(context.Background(), b.key(hash), pairs...).Err())
}

// expire expires a task's permit.
func (b *bench) expire(key string) {
	b.t.Helper()
	require.NoError(b.t, b.rdb.ZAddXX(context.Background(), b.key("permits"), redis.Z{Member: key, Score: 1}).Err())
}

// age moves time fields (ms) of the recognize state into the past.
func (b *bench) age(by time.Duration, fields ...string) {
	b.t.Helper()
	for _, f := range fields {
		b.set(mainRecognize, f, b.num(mainRecognize, f)-by.Milliseconds())
	}
}

// seedAll seeds every budget that err reports as missing. spent is the number of units spent so far.
func (b *bench) seedAll(err error, spent int64) {
	b.t.Helper()
	var m *MissingPeriods
	require.ErrorAs(b.t, err, &m)
	var units []PeriodUnits
	for _, p := range m.Periods {
		units = append(units, PeriodUnits{Period: p, Spent: spent})
	}
	n, err := b.Seed(context.Background(), units...)
	require.NoError(b.t, err)
	require.Equal(b.t, len(units), n)
}

func keyOf(i int) string { return fmt.Sprintf("recognize_%03d", i) }

const mainRecognize = "state:main:recognize"

const (
	patience = time.Minute // ends a test that hangs
	about    = time.Minute // tolerance of waits on a busy machine
)

var (
	done      = CallReport{Outcome: tasks.Match, Channel: tasks.ChannelSuccess, PossiblyBilled: true, UnitsUsed: 1, Latency: 200 * time.Millisecond, ClearRecord: true}
	failed    = CallReport{Outcome: tasks.Unavailable, Channel: tasks.ChannelFailure, Counted: true, PossiblyBilled: true, UnitsUsed: 1, Latency: time.Second}
	late      = CallReport{Outcome: tasks.Match, Channel: tasks.ChannelSuccess, PossiblyBilled: true, UnitsUsed: 1, Latency: time.Minute} // so that two latencies outlast the test
	throttled = CallReport{Outcome: tasks.Throttled, Channel: tasks.ChannelExcluded, Latency: 20 * time.Millisecond}
)
