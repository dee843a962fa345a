package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"reprise/internal/redistest"
	"reprise/tasks"
)

// model checks the invariants after any sequence of acquires, settles, expiries and crashes.
type model struct {
	t     *testing.T
	gates []*bench
	held  []*Permit // permits of running workers
	dead  []*Permit // permits of crashed workers; settled late or never
	used  int64     // units of settled calls
	kept  int64     // units of lost attempts that may have been billed
}

const (
	modelPermits = 3
	modelCap     = 12
)

func (m *model) any(rt *rapid.T, list []*Permit) (int, bool) {
	if len(list) == 0 {
		return 0, false
	}
	return rapid.IntRange(0, len(list)-1).Draw(rt, "which"), true
}

func (m *model) acquire(rt *rapid.T) {
	b := m.gates[rapid.IntRange(0, len(m.gates)-1).Draw(rt, "worker")]
	r := request(keyOf(rapid.IntRange(0, 5).Draw(rt, "key")))
	r.Units = rapid.Int64Range(0, 4).Draw(rt, "units")
	p, err := b.Acquire(m.t.Context(), r)
	if err != nil {
		return
	}
	again, err := b.Acquire(m.t.Context(), r) // a repeat after a lost reply
	require.NoError(rt, err)
	require.Equal(rt, p.Record, again.Record)
	m.held = append(m.held, p)
}

func (m *model) settle(rt *rapid.T) {
	i, ok := m.any(rt, m.held)
	if !ok {
		return
	}
	p := m.held[i]
	m.held = append(m.held[:i], m.held[i+1:]...)
	s := CallReport{Outcome: tasks.Match, Channel: tasks.ChannelSuccess, PossiblyBilled: true, UnitsUsed: rapid.Int64Range(0, p.Units).Draw(rt, "used")}
	s.ClearRecord = rapid.Bool().Draw(rt, "finished")
	for range rapid.IntRange(1, 3).Draw(rt, "times") {
		require.NoError(rt, m.gates[0].Settle(m.t.Context(), p, s))
	}
	m.used += s.UnitsUsed
}

func (m *model) crash(rt *rapid.T) {
	if i, ok := m.any(rt, m.held); ok {
		p := m.held[i]
		m.held = append(m.held[:i], m.held[i+1:]...)
		for _, b := range m.gates { // the worker does not renew the permit
			b.mu.Lock()
			delete(b.permits, p.AttemptID)
			b.mu.Unlock()
		}
		m.gates[0].expire(p.Key)
		m.dead = append(m.dead, p)
		m.kept += p.Units
	}
}

// lateSettle settles an attempt whose worker was suspended. Redis can correct only an attempt that it still has.
func (m *model) lateSettle(rt *rapid.T) {
	i, ok := m.any(rt, m.dead)
	if !ok {
		return
	}
	p := m.dead[i]
	if b := m.gates[0]; b.rec(p.Key, "attempt") != p.AttemptID && !strings.Contains(b.rec(p.Key, "lost"), "attempt:"+p.AttemptID+" ") {
		return
	}
	m.dead = append(m.dead[:i], m.dead[i+1:]...)
	require.NoError(rt, m.gates[1].Settle(m.t.Context(), p, CallReport{Outcome: tasks.Interrupted, Channel: tasks.ChannelNone}))
	m.kept -= p.Units
}

func (m *model) renew(rt *rapid.T) {
	for _, b := range m.gates {
		require.NoError(rt, b.Renew(m.t.Context()))
	}
}

func (m *model) check(rt *rapid.T) {
	b := m.gates[0]
	keys, err := b.rdb.Keys(m.t.Context(), b.key("budget:*")).Result()
	require.NoError(rt, err)
	for _, k := range keys {
		name := strings.TrimPrefix(k, b.cfg.Prefix)
		reserved, spent := b.num(name, "reserved"), b.num(name, "spent")
		require.LessOrEqual(rt, reserved+spent, int64(modelCap), "used ≤ budget")
		require.GreaterOrEqual(rt, reserved+spent, m.used+m.kept, "all units that may be billed are counted")
	}
	live, err := b.rdb.ZCount(m.t.Context(), b.key("permits"), fmt.Sprint(time.Now().UnixMilli()), "+inf").Result()
	require.NoError(rt, err)
	require.LessOrEqual(rt, live, int64(modelPermits))
	require.EqualValues(rt, len(m.held), live)
}

func TestAnyInterleavingKeepsBudgetsAndPermitsWithinTheirLimits(t *testing.T) {
	t.Parallel()
	rdb := redistest.DB(t)
	rapid.Check(t, func(rt *rapid.T) {
		require.NoError(rt, rdb.FlushDB(t.Context()).Err())
		m := &model{t: t}
		for range 2 {
			m.gates = append(m.gates, benchOn(t, rdb, func(c *Config) {
				c.Paths = map[tasks.Path]Limits{tasks.Recognize: {Concurrency: modelPermits, UnitsPerDay: modelCap}}
				c.PermitTTL = 10 * time.Minute // permits expire only when the test expires them
			}))
		}
		_, err := m.gates[0].Acquire(t.Context(), request(keyOf(0)))
		m.gates[0].seedAll(err, 0)
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": m.acquire, "settle": m.settle, "crash": m.crash, "late": m.lateSettle, "renew": m.renew, "": m.check,
		})
		m.converges(rt)
	})
}

// converges settles or expires all permits and checks that no permit and no reservation remains.
func (m *model) converges(rt *rapid.T) {
	for len(m.held) > 0 {
		m.settle(rt)
	}
	b := m.gates[0]
	p, err := b.Acquire(m.t.Context(), Request{Key: "recognize_last", AttemptID: request("").AttemptID, Path: tasks.Recognize, UnitsBounded: true})
	require.NoError(rt, err)
	require.NoError(rt, b.Settle(m.t.Context(), p, done))
	require.EqualValues(rt, 0, b.num(mainRecognize, "in_flight"))
	require.EqualValues(rt, 0, b.num("state:global", "in_flight"))
	held, err := b.rdb.ZCard(m.t.Context(), b.key("permits")).Result()
	require.NoError(rt, err)
	require.Zero(rt, held)
	keys, err := b.rdb.Keys(m.t.Context(), b.key("budget:*")).Result()
	require.NoError(rt, err)
	for _, k := range keys {
		name := strings.TrimPrefix(k, b.cfg.Prefix)
		require.EqualValues(rt, 0, b.num(name, "reserved"))
		require.Equal(rt, m.used+m.kept, b.num(name, "spent"))
	}
}
