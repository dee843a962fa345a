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

// midday returns a time zone in which it is about noon, so that no day ends
// during a test.
func midday() string {
	east := 12 - time.Now().UTC().Hour()
	return fmt.Sprintf("Etc/GMT%+d", -east) // POSIX: GMT-3 is three hours east
}

// daily limits recognize to so many units a day.
func daily(units int64) func(*worker.Options) {
	return func(o *worker.Options) {
		o.Admission.TimeZone = midday()
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {UnitsPerDay: units}}
	}
}

// budgets returns the Redis keys of all unit budgets.
func (f *fleet) budgets() []string {
	f.T.Helper()
	keys, err := f.Redis.Keys(f.T.Context(), admission.DefaultPrefix+"budget:*").Result()
	require.NoError(f.T, err)
	return keys
}

// nextDay moves the call rows and the budgets to the day before.
func (f *fleet) nextDay() {
	f.T.Helper()
	_, err := f.Store.DB().ExecContext(f.T.Context(), "UPDATE call SET at = at - ?", (24 * time.Hour).Milliseconds())
	require.NoError(f.T, err)
	for _, key := range f.budgets() {
		cut := strings.LastIndex(key, ":")
		day, err := time.Parse(time.DateOnly, key[cut+1:])
		require.NoError(f.T, err)
		require.NoError(f.T, f.Redis.Rename(f.T.Context(), key, key[:cut+1]+day.AddDate(0, 0, -1).Format(time.DateOnly)).Err())
	}
}

func TestBatchStopsExactlyAtTheDailyLimitAndContinuesTheNextDay(t *testing.T) {
	t.Parallel()
	const limit = 50
	f := newFleet(t, auddsim.Config{Limits: auddsim.Limits{Latency: 30 * time.Millisecond, Jitter: 0.5}})
	payloads := f.send("", "capped", 120)
	f.start(3, daily(limit))
	for day := range 2 {
		want := int64((day + 1) * limit)
		proctest.Eventually(t, func() bool { return f.Sim.Sums().Units >= want }, "day %d: %d units", day, f.units)
		f.waitPaused(recognize, "auto:units_day")
		f.waitQuiet(recognize)
		// Paused queues are checked more often than every 2 s.
		proctest.Never(t, 2*time.Second, func() bool { return !f.paused(recognize) })
		require.Equal(t, want, f.Sim.Sums().Units, "units after day %d", day+1)
		require.LessOrEqual(t, f.Counts(recognize).Retry, 3*slots)
		f.nextDay()
	}
	f.waitDone(payloads)
	f.requireOnce(payloads)
}

func TestBudgetsLostDuringABatchAreSeededFromTheCallRows(t *testing.T) {
	t.Parallel()
	const limit = 150
	f := newFleet(t, auddsim.Config{Limits: auddsim.Limits{Latency: 30 * time.Millisecond, Jitter: 0.5}})
	f.send("", "lost", limit+60)
	f.start(3, daily(limit))
	const losses = 12
	for i := range losses {
		want := int64((i + 1) * limit / (losses + 1))
		// Calls that are counted twice may use up the day's budget earlier.
		proctest.Eventually(t, func() bool { return f.Sim.Sums().Units >= want || f.paused(recognize) }, "%d units", f.units)
		f.lose()
		proctest.Eventually(t, f.seeded)
	}
	f.waitPaused(recognize, "auto:units_day")
	f.waitQuiet(recognize)
	require.LessOrEqual(t, f.Sim.Sums().Units, int64(limit), "units within the limit")
	seeded := 0
	for _, w := range f.workers {
		seeded += len(w.log.Lines("unit budgets were seeded from the call rows"))
	}
	require.GreaterOrEqual(t, seeded, losses)

	// Lost again while no call runs: now the call rows are exact.
	f.lose()
	proctest.Eventually(t, func() bool { return f.Sim.Sums().Units >= limit }, "%d units", f.units)
	f.waitPaused(recognize, "auto:units_day")
	f.waitQuiet(recognize)
	require.EqualValues(t, limit, f.Sim.Sums().Units)
}

func TestRedisFlushedDuringABatchDoesNotOverspend(t *testing.T) {
	t.Parallel()
	const limit, kept = 40, 5
	f := newFleet(t, auddsim.Config{Limits: auddsim.Limits{Latency: 10 * time.Millisecond}})
	f.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*kept*"})
	f.send("", "kept", kept)
	f.start(3, func(o *worker.Options) {
		daily(limit)(o)
		o.Admission.RenewEvery = 8 * time.Second // Redis learns of the held calls only then
	})
	defer f.Sim.Release("") // workers wait for their calls when they stop
	f.WaitHeld(kept)        // these have no call row
	payloads := f.send("", "flushed", limit+40)
	proctest.Eventually(t, func() bool { return f.Sim.Sums().Units >= limit/4 })
	require.NoError(t, f.Redis.FlushAll(t.Context()).Err())
	f.enqueue("", payloads...) // as the user does; finished tasks cause no second call
	f.waitPaused(recognize, "auto:units_day")
	require.Len(t, f.WaitHeld(kept), kept)
	f.Sim.Release("")
	f.waitQuiet(recognize)
	require.LessOrEqual(t, f.Sim.Sums().Units, int64(limit))
	require.GreaterOrEqual(t, f.Sim.Sums().Units, int64(limit-3*slots))
}

// The new worker never saw limits in Redis; the call rows show that there were some.
func TestWorkerStartedAfterRedisWasFlushedDoesNotOverspend(t *testing.T) {
	t.Parallel()
	const limit, kept = 40, 5
	f := newFleet(t, auddsim.Config{Limits: auddsim.Limits{Latency: 10 * time.Millisecond}})
	f.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*kept*"})
	slow := func(o *worker.Options) {
		daily(limit)(o)
		o.Admission.RenewEvery = 8 * time.Second // Redis learns of its held calls only then
	}
	f.worker(slow)
	defer f.Sim.Release("") // the worker waits for its calls when it stops
	f.waitDone(f.send("", "earlier", 2))
	f.send("", "kept", kept)
	f.WaitHeld(kept) // these have no call row
	require.NoError(t, f.Redis.FlushAll(t.Context()).Err())
	f.worker(slow)
	f.send("", "later", limit)
	f.waitPaused(recognize, "auto:units_day")
	require.Len(t, f.WaitHeld(kept), kept)
	f.Sim.Release("")
	f.waitQuiet(recognize)
	require.LessOrEqual(t, f.Sim.Sums().Units, int64(limit))
}

// lose deletes the unit budgets from Redis.
func (f *fleet) lose() {
	f.T.Helper()
	require.NoError(f.T, f.Redis.Del(f.T.Context(), f.budgets()...).Err())
}

// seeded reports whether the unit budgets exist.
func (f *fleet) seeded() bool {
	keys := f.budgets()
	for _, key := range keys {
		there, err := f.Redis.HExists(f.T.Context(), key, "spent").Result()
		require.NoError(f.T, err)
		if !there { // not seeded yet
			return false
		}
	}
	return len(keys) > 0
}

func TestFailFastArchivesReplayableTasksWhenTheBudgetIsUsedUp(t *testing.T) {
	t.Parallel()
	const limit = 5
	f := newFleet(t, auddsim.Config{})
	payloads := f.send("", "fast", 12)
	f.start(2, func(o *worker.Options) {
		daily(limit)(o)
		o.Admission.QuotaFull, o.Policy.QuotaFull = tasks.QuotaFailFast, tasks.QuotaFailFast
	})
	proctest.Eventually(t, func() bool {
		v := f.verdicts(payloads)
		return v[tasks.Done] == limit && v[tasks.Archive] == len(payloads)-limit
	}, "%v", func() any { return f.verdicts(payloads) })
	rows, err := f.Store.Tasks(t.Context(), store.TaskFilter{Outcome: tasks.Quota, Replayable: true})
	require.NoError(t, err)
	require.Len(t, rows, len(payloads)-limit)
	require.EqualValues(t, limit, f.Sim.Sums().Units)
	require.False(t, f.paused(recognize))
}

func TestUsedUpAccountQuotaPausesTheQueueUntilCallsAreAllowedAgain(t *testing.T) {
	t.Parallel()
	const quota = 20
	f := newFleet(t, auddsim.Config{Quota: quota})
	payloads := f.send("", "quota", 60)
	f.start(2, nil)
	f.waitPaused(recognize, "auto:halt")
	f.waitQuiet(recognize)
	require.Equal(t, string(tasks.Quota), f.source(mainSource).Halt)
	require.EqualValues(t, quota, f.Sim.Sums().Units)
	none := int64(0)
	f.Sim.SetToken(auddsim.Token{Value: mainToken, Quota: &none})
	f.set(mainState, "halt_probe_at", time.Now().UnixMilli()) // the next probe is due
	proctest.Eventually(t, func() bool { return !f.paused(recognize) })
	_, err := redistest.AgeRetries(t.Context(), f.Redis, recognize, 10*time.Minute) // tasks refused by the quota are retried after a minute or two
	require.NoError(t, err)
	f.waitDone(payloads)
	f.requireOnce(payloads)
	require.Zero(t, f.Counts(recognize).Archived)
}
