package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/tasks"
)

func TestNothingIsAdmittedBeforeAMissingBudgetIsSeeded(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		c.Paths = map[tasks.Path]Limits{tasks.Recognize: {UnitsPerDay: 10, UnitsPerMonth: 20}}
		c.Global.UnitsPerDay = 30
		c.TimeZone = "Pacific/Auckland"
		c.MonthAnchor = 15
	})
	_, err := b.Acquire(t.Context(), request(keyOf(1)))
	var m *MissingPeriods
	require.ErrorAs(t, err, &m)
	require.Len(t, m.Periods, 3)
	now := time.Now()
	for _, p := range m.Periods {
		require.False(t, now.Before(p.Start), p.Name)
		require.True(t, now.Before(p.End), p.Name)
	}
	require.Equal(t, tasks.Recognize, m.Periods[0].Path)
	require.Equal(t, "main", m.Periods[1].Source)
	require.Empty(t, m.Periods[2].Source)
	require.Equal(t, 15, m.Periods[1].Start.Day())
	require.EqualValues(t, 0, b.num(mainRecognize, "in_flight"))
	b.seedAll(err, 8)
	b.settle(b.acquire(request(keyOf(1))), done)
	b.settle(b.acquire(request(keyOf(2))), done)
	ref := b.refused(request(keyOf(3)))
	require.Equal(t, GateUnitsDay, ref.Gate)
	require.True(t, ref.AllBlocked)
	require.InDelta(t, time.Until(m.Periods[0].End).Seconds(), ref.RetryAfter.Seconds(), about.Seconds())

	n, err := b.Seed(t.Context(), PeriodUnits{Period: m.Periods[0], Spent: 0})
	require.NoError(t, err)
	require.Zero(t, n, "a second worker's seed changes nothing")
}

func TestDayBudgetAdmitsExactlyItsUnits(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 7}))
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 0)
	admitted := 0
	for i := range 20 {
		p, err := b.Acquire(t.Context(), request(keyOf(i)))
		if err == nil {
			admitted++
			b.settle(p, done)
		}
	}
	require.Equal(t, 7, admitted)
}

func TestSeedAddsCallsInFlight(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 10}))
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 0)
	p := b.acquire(request(keyOf(0)))
	require.NoError(t, b.rdb.Del(t.Context(), b.key("budget:"+p.Budgets)).Err())
	_, err = b.Acquire(t.Context(), request(keyOf(1)))
	b.seedAll(err, 9)
	require.Equal(t, GateUnitsDay, b.refused(request(keyOf(1))).Gate, "9 settled and 1 in flight")
	b.settle(p, CallReport{Outcome: tasks.UnavailableUnsent, Channel: tasks.ChannelNone})
	b.acquire(request(keyOf(1)))
}

// After data loss, neither call rows nor budgets include a call in flight. The call must be charged even if its
// renewal comes after the seed.
func TestBudgetIncludesCallsInFlightAfterDataLoss(t *testing.T) {
	t.Parallel()
	for name, renewFirst := range map[string]bool{"registered before the seed": true, "registered after the seed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, oneSource(Limits{UnitsPerDay: 500}))
			other := benchOn(t, b.rdb, oneSource(Limits{UnitsPerDay: 500}))
			r := request(keyOf(0))
			r.Units = 300
			_, err := b.Acquire(t.Context(), r)
			b.seedAll(err, 0)
			p := b.acquire(r)
			require.NoError(t, p.Valid()) // its call is sent
			require.NoError(t, b.rdb.FlushDB(t.Context()).Err())
			if renewFirst {
				require.NoError(t, b.Renew(t.Context()))
			}
			_, err = other.Acquire(t.Context(), request(keyOf(1)))
			other.seedAll(err, 0)
			require.NoError(t, b.Renew(t.Context()))
			require.EqualValues(t, 300, b.num("budget:"+p.Budgets, "reserved"))
			second := request(keyOf(2))
			second.Units = 201
			require.Equal(t, GateUnitsDay, other.refused(second).Gate)
			s := done
			s.UnitsUsed = 250
			b.settle(p, s)
			require.EqualValues(t, 250, b.num("budget:"+p.Budgets, "spent"))
			require.EqualValues(t, 0, b.num("budget:"+p.Budgets, "reserved"))
		})
	}
}

// A unit budget admits nothing until the calls in flight are registered again. Otherwise their reserved units would
// be granted twice.
func TestRecoveryHoldWaitsForTheCallsInFlight(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 500}))
	other := benchOn(t, b.rdb, oneSource(Limits{UnitsPerDay: 500}))
	r := request(keyOf(0))
	r.Units = 300
	_, err := b.Acquire(t.Context(), r)
	b.seedAll(err, 0)
	p := b.acquire(r)
	require.NoError(t, p.Valid()) // its call is sent
	other.settle(other.acquire(request(keyOf(3))), done)
	require.NoError(t, b.rdb.FlushDB(t.Context()).Err())

	second := request(keyOf(1))
	second.Units = 201
	ref := other.refused(second)
	require.Equal(t, GateUnits, ref.Gate)
	require.False(t, ref.AllBlocked)
	require.LessOrEqual(t, ref.RetryAfter, b.cfg.RenewEvery+b.cfg.Timeout)
	require.NoError(t, b.Renew(t.Context()))
	require.NoError(t, b.rdb.HSet(t.Context(), b.key("state:global"), "recovery_hold_until", 1).Err()) // the hold is over
	_, err = other.Acquire(t.Context(), second)
	other.seedAll(err, 0)
	require.Equal(t, GateUnitsDay, other.refused(second).Gate)
	b.settle(p, done)
}

func TestSettleAfterMidnightCorrectsTheDayOfItsAcquire(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 100}))
	r := request(keyOf(0))
	r.Units = 40
	_, err := b.Acquire(t.Context(), r)
	b.seedAll(err, 0)
	p := b.acquire(r)
	today, yesterday := p.Budgets, "main:recognize:2001-02-03"
	require.NoError(t, b.rdb.Rename(t.Context(), b.key("budget:"+today), b.key("budget:"+yesterday)).Err())
	record := b.rdb.Get(t.Context(), b.key("task:"+r.Key)).Val()
	require.NoError(t, b.rdb.Set(t.Context(), b.key("task:"+r.Key), strings.ReplaceAll(record, today, yesterday), 0).Err()) // the call was admitted yesterday
	_, err = b.Acquire(t.Context(), request(keyOf(1)))
	b.seedAll(err, 0)
	s := done
	s.UnitsUsed = 30
	b.settle(p, s)
	require.EqualValues(t, 30, b.num("budget:"+yesterday, "spent"))
	require.EqualValues(t, 0, b.num("budget:"+yesterday, "reserved"))
	require.EqualValues(t, 0, b.num("budget:"+today, "spent"))
}

func TestSettleOfAnUnknownAttemptIsCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 100}))
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 0)
	p := b.acquire(request(keyOf(0)))
	require.NoError(t, b.rdb.Del(t.Context(), b.key("task:"+p.Key), b.key("permits")).Err())
	b.set("budget:"+p.Budgets, "reserved", 0)
	b.settle(p, failed)
	b.settle(p, failed)
	require.EqualValues(t, 1, b.num("budget:"+p.Budgets, "spent"))
	require.Equal(t, 1, b.acquire(request(keyOf(0))).Record.Counted)
}

func TestUnboundedTaskIsRefusedPermanentlyUnderAUnitBudget(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 5}))
	r := request(keyOf(0))
	r.UnitsBounded, r.Units = false, 0
	ref := b.refused(r)
	require.Equal(t, GateUnbounded, ref.Gate)
	require.True(t, ref.Permanent)
	r = request(keyOf(0))
	r.Units = 6
	ref = b.refused(r)
	require.Equal(t, GateUnitsTooMany, ref.Gate)
	require.True(t, ref.Permanent)
}

func TestUsedUpBudgetFailsFastIfConfigured(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		oneSource(Limits{UnitsPerDay: 5})(c)
		c.QuotaFull = tasks.QuotaFailFast
	})
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 5)
	require.True(t, b.refused(request(keyOf(0))).FailFast)
}

// Regression: a call row was written just after the seed had read the rows, and the call's settle found no budget to
// charge.
func TestSeedIncludesCallsSettledWhileTheBudgetWasMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 10}))
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 0)
	before, within := b.acquire(request(keyOf(1))), b.acquire(request(keyOf(2)))
	require.NoError(t, b.rdb.Del(t.Context(), b.key("budget:"+before.Budgets)).Err())
	b.settle(before, done) // the call row is written before the rows are read
	proctest.Eventually(t, func() bool { return time.Since(*before.confirmed.Load()) > 20*time.Millisecond })
	_, err = b.Acquire(t.Context(), request(keyOf(3)))
	b.settle(within, done)
	b.seedAll(err, 1)
	require.EqualValues(t, 2, b.num("budget:"+within.Budgets, "spent"))
	require.EqualValues(t, 0, b.num("budget:"+within.Budgets, "reserved"))
	left, err := b.rdb.HLen(t.Context(), b.key("budget:"+within.Budgets)).Result()
	require.NoError(t, err)
	require.EqualValues(t, 2, left, "the spent_at fields are deleted")
}

func TestUnreadableBudgetIsSeededAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 100}))
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 0)
	keys, err := b.rdb.Keys(t.Context(), b.key("budget:*")).Result()
	require.NoError(t, err)
	require.NoError(t, b.rdb.HSet(t.Context(), keys[0], "reserved", "abc").Err())
	_, err = b.Acquire(t.Context(), request(keyOf(1)))
	b.seedAll(err, 99)
	b.acquire(request(keyOf(1)))
	require.Equal(t, GateUnitsDay, b.refused(request(keyOf(2))).Gate)
}

// Regression: a seed used rows that were read before data loss. It missed the calls in flight, and their reserved
// units were granted twice.
func TestSeedReadBeforeDataLossIsNotWritten(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]bool{"before there are limits again": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, oneSource(Limits{UnitsPerDay: 500}))
			_, err := b.Acquire(t.Context(), request(keyOf(0)))
			var m *MissingPeriods
			require.ErrorAs(t, err, &m)
			require.NoError(t, b.rdb.FlushDB(t.Context()).Err())
			if limits {
				_, err = b.SeedLimits(t.Context())
				require.NoError(t, err)
			}
			n, err := b.Seed(t.Context(), PeriodUnits{Period: m.Periods[0]})
			require.NoError(t, err)
			require.Zero(t, n)
			require.Equal(t, GateUnits, b.refused(request(keyOf(0))).Gate)
		})
	}
}

// Budgets must not stay unseeded indefinitely after a clock was set back.
func TestRecoveryHoldFarInTheFutureIsIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 500}))
	b.set("state:global", "recovery_hold_until", time.Now().Add(48*time.Hour).UnixMilli())
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 0)
	b.acquire(request(keyOf(0)))
}
