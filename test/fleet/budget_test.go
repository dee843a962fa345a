package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

// midday is a time zone in which the day is far from both its ends now.
func midday() string {
	east := 12 - time.Now().UTC().Hour()
	return fmt.Sprintf("Etc/GMT%+d", -east) // POSIX: GMT-3 is three hours east
}

// daily gives recognize so many units a day.
func daily(units int64) func(*worker.Options) {
	return func(o *worker.Options) {
		o.Admission.TimeZone = midday()
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {UnitsPerDay: units}}
	}
}

// budgets are the keys of all unit budgets in Redis.
func (r *rig) budgets() []string {
	r.t.Helper()
	keys, err := r.rdb.Keys(r.t.Context(), admission.DefaultPrefix+"budget:*").Result()
	require.NoError(r.t, err)
	return keys
}

// nextDay makes everything so far yesterday's: the call rows and the budgets.
func (r *rig) nextDay() {
	r.t.Helper()
	_, err := r.store.DB().ExecContext(r.t.Context(), "UPDATE call SET at = at - ?", (24 * time.Hour).Milliseconds())
	require.NoError(r.t, err)
	for _, key := range r.budgets() {
		cut := strings.LastIndex(key, ":")
		day, err := time.Parse(time.DateOnly, key[cut+1:])
		require.NoError(r.t, err)
		require.NoError(r.t, r.rdb.Rename(r.t.Context(), key, key[:cut+1]+day.AddDate(0, 0, -1).Format(time.DateOnly)).Err())
	}
}

func TestADaysCapStopsTheBatchExactlyThereAndTheNextDayGoesOn(t *testing.T) {
	t.Parallel()
	const limit = 50
	r := newRig(t, auddsim.Config{Limits: auddsim.Limits{Latency: 30 * time.Millisecond, Jitter: 0.5}})
	payloads := r.send("", "capped", 120)
	r.fleet(3, daily(limit))
	for day := range 2 {
		want := int64((day + 1) * limit)
		require.True(t, eventually(30*time.Second, func() bool { return r.sim.Sums().Units >= want }), "day %d: %d", day, r.sim.Sums().Units)
		r.closed(recognize, "auto:units_day", 20*time.Second)
		r.quiet(recognize)
		proctest.Pass(2 * time.Second) // nobody opens it again
		require.True(t, r.paused(recognize))
		require.Equal(t, want, r.sim.Sums().Units, "day %d stops exactly at its cap", day+1)
		require.LessOrEqual(t, r.counts(recognize).Retry, 3*slots)
		r.nextDay()
	}
	r.allDone(payloads, 40*time.Second)
	r.once(payloads)
}

func TestBudgetsLostInTheMiddleOfABatchAreSeededFromTheCallRows(t *testing.T) {
	t.Parallel()
	const limit = 150
	r := newRig(t, auddsim.Config{Limits: auddsim.Limits{Latency: 30 * time.Millisecond, Jitter: 0.5}})
	r.send("", "lost", limit+60)
	r.fleet(3, daily(limit))
	const losses = 12
	for i := range losses {
		want := int64((i + 1) * limit / (losses + 1))
		// What was counted twice may end the day before so many were used.
		require.True(t, eventually(30*time.Second, func() bool { return r.sim.Sums().Units >= want || r.paused(recognize) }), "%d units", r.sim.Sums().Units)
		r.lose()
		require.True(t, eventually(20*time.Second, r.seeded))
	}
	r.closed(recognize, "auto:units_day", 30*time.Second)
	r.quiet(recognize)
	require.LessOrEqual(t, r.sim.Sums().Units, int64(limit), "never more than the cap")
	seeded := 0
	for _, w := range r.workers {
		seeded += len(w.log.Lines("unit budgets were seeded from the call rows"))
	}
	require.GreaterOrEqual(t, seeded, losses)

	// Once more with nothing under way: now the rows are exact.
	r.lose()
	require.True(t, eventually(30*time.Second, func() bool { return r.sim.Sums().Units >= limit }), "%d units", r.sim.Sums().Units)
	r.closed(recognize, "auto:units_day", 20*time.Second)
	r.quiet(recognize)
	require.EqualValues(t, limit, r.sim.Sums().Units)
}

func TestRedisLostWholeInTheMiddleOfABatchOverspendsNothing(t *testing.T) {
	t.Parallel()
	const limit, kept = 40, 5
	r := newRig(t, auddsim.Config{Limits: auddsim.Limits{Latency: 10 * time.Millisecond}})
	r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*kept*"})
	r.send("", "kept", kept)
	r.fleet(3, func(o *worker.Options) {
		daily(limit)(o)
		o.Admission.RenewEvery = 8 * time.Second // until then Redis does not know of them again
	})
	defer r.sim.Release("") // the workers wait for it when they stop
	r.held(kept)            // no call row has these
	payloads := r.send("", "flushed", limit+40)
	require.True(t, eventually(30*time.Second, func() bool { return r.sim.Sums().Units >= limit/4 }))
	require.NoError(t, r.rdb.FlushAll(t.Context()).Err())
	r.enqueue("", payloads...) // as their owner does; what is done is not called for again
	r.closed(recognize, "auto:units_day", 40*time.Second)
	require.Len(t, r.held(kept), kept)
	r.sim.Release("")
	r.quiet(recognize)
	require.LessOrEqual(t, r.sim.Sums().Units, int64(limit))
	require.GreaterOrEqual(t, r.sim.Sums().Units, int64(limit-3*slots))
}

// It never saw limits in Redis: that there were some, the call rows tell.
func TestAWorkerThatStartsAfterRedisWasLostWholeOverspendsNothing(t *testing.T) {
	t.Parallel()
	const limit, kept = 40, 5
	r := newRig(t, auddsim.Config{Limits: auddsim.Limits{Latency: 10 * time.Millisecond}})
	r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*kept*"})
	slow := func(o *worker.Options) {
		daily(limit)(o)
		o.Admission.RenewEvery = 8 * time.Second // until then Redis does not know of its calls again
	}
	r.worker(slow)
	defer r.sim.Release("") // the worker waits for it when it stops
	r.allDone(r.send("", "earlier", 2), 20*time.Second)
	r.send("", "kept", kept)
	r.held(kept) // no call row has these
	require.NoError(t, r.rdb.FlushAll(t.Context()).Err())
	r.worker(slow)
	r.send("", "later", limit)
	r.closed(recognize, "auto:units_day", 40*time.Second)
	require.Len(t, r.held(kept), kept)
	r.sim.Release("")
	r.quiet(recognize)
	require.LessOrEqual(t, r.sim.Sums().Units, int64(limit))
}

// lose deletes the unit budgets.
func (r *rig) lose() {
	r.t.Helper()
	require.NoError(r.t, r.rdb.Del(r.t.Context(), r.budgets()...).Err())
}

// seeded reports whether the unit budgets are there.
func (r *rig) seeded() bool {
	keys := r.budgets()
	for _, key := range keys {
		there, err := r.rdb.HExists(r.t.Context(), key, "spent").Result()
		require.NoError(r.t, err)
		if !there { // notes for its seed
			return false
		}
	}
	return len(keys) > 0
}

func TestAFullQuotaWithFailFastArchivesWhatCanBeReplayed(t *testing.T) {
	t.Parallel()
	const limit = 5
	r := newRig(t, auddsim.Config{})
	payloads := r.send("", "fast", 12)
	r.fleet(2, func(o *worker.Options) {
		daily(limit)(o)
		o.Admission.QuotaFull, o.Policy.QuotaFull = tasks.QuotaFailFast, tasks.QuotaFailFast
	})
	require.True(t, eventually(20*time.Second, func() bool {
		f := r.finished(payloads)
		return f[tasks.Done] == limit && f[tasks.Archive] == len(payloads)-limit
	}), "%v", r.finished(payloads))
	rows, err := r.store.Tasks(t.Context(), store.TaskFilter{Outcome: tasks.Quota, Replayable: true})
	require.NoError(t, err)
	require.Len(t, rows, len(payloads)-limit)
	require.EqualValues(t, limit, r.sim.Sums().Units)
	require.False(t, r.paused(recognize))
}

func TestAnAccountsUsedUpQuotaClosesTheQueueUntilItIsBack(t *testing.T) {
	t.Parallel()
	const quota = 20
	r := newRig(t, auddsim.Config{Quota: quota})
	payloads := r.send("", "quota", 60)
	r.fleet(2, nil)
	r.closed(recognize, "auto:halt", 20*time.Second)
	r.quiet(recognize)
	require.Equal(t, string(tasks.Quota), r.source(mainSource).Halt)
	require.EqualValues(t, quota, r.sim.Sums().Units)
	none := int64(0)
	r.sim.SetToken(auddsim.Token{Value: mainToken, Quota: &none})
	r.set(mainState, "halt_probe_at", time.Now().UnixMilli()) // the hour is over
	require.True(t, eventually(10*time.Second, func() bool { return !r.paused(recognize) }))
	_, err := redistest.AgeRetries(t.Context(), r.rdb, recognize, 10*time.Minute) // those that met the quota look again after a minute or two
	require.NoError(t, err)
	r.allDone(payloads, 40*time.Second)
	r.once(payloads)
	require.Zero(t, r.counts(recognize).Archived)
}
