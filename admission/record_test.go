package admission

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A renewal restores a record that Redis lost during the call. If the acquire's reply was lost too, the attempt can
// acquire again.
func TestAttemptGetsItsPermitAgainAfterItsRecordWasLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	r := request(keyOf(0))
	p := b.acquire(r)
	require.NoError(t, p.Valid()) // its call is sent
	require.NoError(t, b.rdb.Del(t.Context(), b.key("task:"+r.Key), b.key("permits")).Err())
	require.NoError(t, b.Renew(t.Context()))
	require.Equal(t, p.Source, b.acquire(r).Source)
}

// A value that Reprise did not write must not fail decisions about other tasks.
func TestUnreadableRecordAffectsOnlyItsTask(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"settled_attempts is a list": `{"settled_attempts":[1]}`,
		"budgets is a number":        `{"attempt":"x","source":"main","path":"recognize","budgets":3}`,
		"budgets is a list":          `{"attempt":"x","source":"main","path":"recognize","budgets":[]}`,
		"budgets is null":            `{"attempt":"x","source":"main","path":"recognize","budgets":null}`,
		"units is a string":          `{"attempt":"x","source":"main","path":"recognize","budgets":"main:recognize:2026-01-01","units":"q"}`,
		"units is a fraction":        `{"attempt":"x","source":"main","path":"recognize","units":1.5,"budgets":"main:recognize:2026-01-01"}`,
		"units is too large":         `{"attempt":"x","source":"main","path":"recognize","units":1e300}`,
		"path is missing":            `{"attempt":"x","source":"main"}`,
		"lost is a string":           `{"attempt":"x","source":"main","path":"recognize","lost":"y"}`,
		"lost units are a string":    `{"attempt":"x","source":"main","path":"recognize","lost":{"attempt":"y","units":"q"}}`,
		"a list":                     `[1,2,3]`,
		"a number":                   `7`,
		"not JSON":                   `\x00{`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.acquire(request(keyOf(1)))
			require.NoError(t, b.rdb.Set(t.Context(), b.key("task:"+keyOf(0)), value, 0).Err())
			require.NoError(t, b.rdb.ZAdd(t.Context(), b.key("permits"), redis.Z{Score: 1, Member: keyOf(0)}).Err())
			b.acquire(request(keyOf(2)))
			b.acquire(request(keyOf(0)))
		})
	}
}

func TestPermitWithoutARecordStillBlocksItsTask(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.acquire(request(keyOf(0)))
	require.NoError(t, b.rdb.Del(t.Context(), b.key("task:"+keyOf(0))).Err())
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	var inFlight *InFlight
	require.ErrorAs(t, err, &inFlight)
	b.expire(keyOf(0))
	b.acquire(request(keyOf(0)))
}

// Regression: a call's permit was not renewed because its record was lost, so a second call of the task was admitted.
func TestSentCallIsRenewedAfterItsRecordIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 10}))
	r := request(keyOf(0))
	_, err := b.Acquire(t.Context(), r)
	b.seedAll(err, 0)
	p := b.acquire(r)
	require.NoError(t, p.Valid()) // its call is sent
	require.NoError(t, b.rdb.Del(t.Context(), b.key("task:"+r.Key)).Err())
	ends := func() float64 { return b.rdb.ZScore(t.Context(), b.key("permits"), r.Key).Val() }
	before := ends() - 5000
	require.NoError(t, b.rdb.ZAddXX(t.Context(), b.key("permits"), redis.Z{Member: r.Key, Score: before}).Err())
	require.NoError(t, b.Renew(t.Context()))
	require.Greater(t, ends(), before+4000)
	require.EqualValues(t, 1, b.num(mainRecognize, "in_flight"))
	require.EqualValues(t, 1, b.num("budget:"+p.Budgets, "reserved"))
	b.settle(p, done)
	require.Zero(t, b.num(mainRecognize, "in_flight"))
	require.Zero(t, b.num("budget:"+p.Budgets, "reserved"))
	require.EqualValues(t, 1, b.num("budget:"+p.Budgets, "spent"))
}

// A later version may add fields to a record. This version keeps them and uses the fields that it supports.
func TestRecordOfALaterVersionIsReadAndKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.settle(b.acquire(request(keyOf(0))), failed)
	record := b.rdb.Get(t.Context(), b.key("task:"+keyOf(0))).Val()
	require.NoError(t, b.rdb.Set(t.Context(), b.key("task:"+keyOf(0)), strings.Replace(record, "{", `{"newer":"kept",`, 1), 0).Err())
	p := b.acquire(request(keyOf(0)))
	require.Equal(t, 1, p.Record.Counted)
	require.Equal(t, 1, p.Record.PossiblyBilled)
	require.Equal(t, "kept", b.rec(keyOf(0), "newer"))
}
