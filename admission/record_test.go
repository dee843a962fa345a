package admission

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// renew rebuilds a record that Redis lost while the call was on its way; the
// same attempt may ask once more, when the answer to its acquire was lost.
func TestARebuiltRecordAnswersItsAttemptAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	r := request(keyOf(0))
	p := b.acquire(r)
	require.NoError(t, p.Valid()) // its call goes out
	require.NoError(t, b.rdb.Del(t.Context(), b.key("j:"+r.Key), b.key("p")).Err())
	require.NoError(t, b.Renew(t.Context()))
	require.Equal(t, p.Source, b.acquire(r).Source)
}

// One value nobody of ours wrote must not end the decisions about other tasks.
func TestAGarbageRecordHurtsOnlyItsTask(t *testing.T) {
	t.Parallel()
	for name, pack := range map[string]string{
		"t is a table":     `{t={1}}`,
		"bk is a number":   `{a='x',src='main',path='recognize',bk=3}`,
		"bk is a table":    `{a='x',src='main',path='recognize',bk={}}`,
		"units is a text":  `{a='x',src='main',path='recognize',bk='main:recognize:2026-01-01',units='q'}`,
		"path is missing":  `{a='x',src='main'}`,
		"a of five things": `{1,2,3}`,
		"a number":         `7`,
		"kept is false":    `{a='x',src='main',path='recognize',kept=false,units=1.5,bk='main:recognize:2026-01-01'}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.acquire(request(keyOf(1)))
			require.NoError(t, b.rdb.Eval(t.Context(), `redis.call('SET', KEYS[1], cmsgpack.pack(`+pack+`)) return redis.call('ZADD', KEYS[2], 1, ARGV[1])`,
				[]string{b.key("j:" + keyOf(0)), b.key("p")}, keyOf(0)).Err())
			b.acquire(request(keyOf(2)))
			b.acquire(request(keyOf(0)))
		})
	}
}

func TestALivePermitKeepsItsKeyOutThoughTheRecordIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.acquire(request(keyOf(0)))
	require.NoError(t, b.rdb.Del(t.Context(), b.key("j:"+keyOf(0))).Err())
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	var inFlight *InFlight
	require.ErrorAs(t, err, &inFlight)
	b.expire(keyOf(0))
	b.acquire(request(keyOf(0)))
}

// It keeps it out for as long as the call runs: once it was renewed no more,
// and another call of the task was admitted beside it.
func TestACallOnItsWayIsRenewedThoughItsRecordIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 10}))
	r := request(keyOf(0))
	_, err := b.Acquire(t.Context(), r)
	b.seedAll(err, 0)
	p := b.acquire(r)
	require.NoError(t, p.Valid()) // its call goes out
	require.NoError(t, b.rdb.Del(t.Context(), b.key("j:"+r.Key)).Err())
	ends := func() float64 { return b.rdb.ZScore(t.Context(), b.key("p"), r.Key).Val() }
	before := ends() - 5000
	require.NoError(t, b.rdb.ZAddXX(t.Context(), b.key("p"), redis.Z{Member: r.Key, Score: before}).Err())
	require.NoError(t, b.Renew(t.Context()))
	require.Greater(t, ends(), before+4000)
	require.EqualValues(t, 1, b.num(mainRecognize, "inflight"))
	require.EqualValues(t, 1, b.num("b:"+p.budgets, "reserved"))
	b.settle(p, done)
	require.Zero(t, b.num(mainRecognize, "inflight"))
	require.Zero(t, b.num("b:"+p.budgets, "reserved"))
	require.EqualValues(t, 1, b.num("b:"+p.budgets, "spent"))
}

// A later version may add to a record: what this one knows of it still counts.
func TestARecordWithFieldsOfALaterVersionKeepsItsHistory(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.settle(b.acquire(request(keyOf(0))), failed)
	require.NoError(t, b.rdb.Eval(t.Context(), `local r = cmsgpack.unpack(redis.call('GET', KEYS[1])) r.newer = 1
		return redis.call('SET', KEYS[1], cmsgpack.pack(r))`, []string{b.key("j:" + keyOf(0))}).Err())
	p := b.acquire(request(keyOf(0)))
	require.Equal(t, 1, p.Record.Counted)
	require.Equal(t, 1, p.Record.PossiblyBilled)
	require.Equal(t, "1", b.rec(keyOf(0), "newer"))
}
