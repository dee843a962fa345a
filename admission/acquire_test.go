package admission

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

func TestTaskIsNeverInFlightTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	begin := time.Now()
	p := b.acquire(request("recognize_x"))
	_, err := b.Acquire(t.Context(), request("recognize_x"))
	var f *InFlight
	require.ErrorAs(t, err, &f)
	require.WithinRange(t, f.Until, begin.Add(11*time.Second), time.Now().Add(12*time.Second))
	b.settle(p, done)
	b.settle(b.acquire(request("recognize_x")), done)
}

func TestRepeatedAcquireGetsTheSamePermit(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{Concurrency: 1, UnitsPerDay: 5}))
	r := request("recognize_x")
	_, err := b.Acquire(t.Context(), r)
	b.seedAll(err, 0)
	first, again := b.acquire(r), b.acquire(r)
	require.Equal(t, first.Source, again.Source)
	require.Equal(t, first.Record, again.Record)
	require.EqualValues(t, 1, b.num(mainRecognize, "in_flight"))
	require.Equal(t, "1", b.rec("recognize_x", "possibly_billed"))
	require.EqualValues(t, 1, b.num("budget:"+first.Budgets, "reserved"))
}

func TestRepeatedSettleChargesOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := b.acquire(request("recognize_x"))
	require.Equal(t, tasks.AttemptRecord{}, p.Record)
	b.settle(p, failed)
	b.settle(p, failed)
	p = b.acquire(request("recognize_x"))
	require.Equal(t, 1, p.Record.Counted)
	require.Equal(t, 1, p.Record.PossiblyBilled)
	require.Equal(t, 1, p.Record.Streak)
	require.Equal(t, 1, p.Record.SameOutcome)
	require.Equal(t, tasks.Unavailable, p.Record.LastOutcome)
	require.Equal(t, time.Second, p.Record.Spent)
	require.False(t, p.Record.FirstFailure.IsZero())
	require.Nil(t, p.Lost)
	require.EqualValues(t, 1, b.num(mainRecognize, "in_flight"))
}

// A settle is repeated if its reply was lost. The repeat may arrive during or after later attempts of the task.
func TestSettleRepeatedAfterLaterAttemptsChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 20}))
	_, err := b.Acquire(t.Context(), request("recognize_x"))
	b.seedAll(err, 0)
	past := make([]*Permit, 4)
	for i := range past {
		past[i] = b.acquire(request("recognize_x"))
		b.settle(past[i], failed)
	}
	repeat := func(when string, charged int) {
		for _, p := range past {
			b.settle(p, failed)
		}
		require.EqualValues(t, 4, b.num(mainRecognize, "failures_in_row"), when)
		require.EqualValues(t, charged, b.num("budget:"+past[0].Budgets, "spent"), when)
	}
	repeat("settled", 4)
	require.Equal(t, "4", b.rec("recognize_x", "counted"))
	last := request("recognize_x")
	p := b.acquire(last)
	repeat("the next is in flight", 4)
	_, err = b.Acquire(t.Context(), Request{Key: last.Key, AttemptID: past[1].AttemptID, Path: last.Path, Units: 1, UnitsBounded: true})
	require.ErrorIs(t, err, ErrAttemptSettled)
	s := done
	s.Channel = tasks.ChannelExcluded
	b.settle(p, s) // the record is cleared
	past = append(past[1:], p)
	repeat("the task is finished", 5)
}

func TestRepeatedSettleOfALostOrUnknownAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 20}))
	_, err := b.Acquire(t.Context(), request("recognize_x"))
	b.seedAll(err, 0)
	lost := b.acquire(request("recognize_x"))
	b.expire(lost.Key)
	b.acquire(request("recognize_x"))
	unknown := &Permit{Admitted: Admitted{Key: lost.Key, AttemptID: "unknown", Path: lost.Path, Source: "main", Budgets: lost.Budgets}}
	for range 2 {
		b.settle(lost, failed)
		b.settle(unknown, failed)
		require.EqualValues(t, 2, b.num("budget:"+lost.Budgets, "spent"))
		require.EqualValues(t, 2, b.num(mainRecognize, "failures_in_row"))
	}
}

func TestSettledAttemptGetsNoSecondPermit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	r := request("recognize_x")
	b.settle(b.acquire(r), done)
	_, err := b.Acquire(t.Context(), r)
	require.ErrorIs(t, err, ErrAttemptSettled)
}

func TestUnsentCallIsNotPossiblyBilled(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.settle(b.acquire(request("recognize_x")), CallReport{Outcome: tasks.UnavailableUnsent, Channel: tasks.ChannelFailure, Counted: true})
	p := b.acquire(request("recognize_x"))
	require.Equal(t, 1, p.Record.Counted)
	require.Zero(t, p.Record.PossiblyBilled)
}

func TestNextAcquireCountsAndReturnsTheLostAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 10}))
	r := request("recognize_x")
	_, err := b.Acquire(t.Context(), r)
	b.seedAll(err, 0)
	first := b.acquire(r)
	b.expire(r.Key)
	p := b.acquire(request(r.Key))
	require.NotNil(t, p.Lost)
	require.Equal(t, r.AttemptID, p.Lost.AttemptID)
	require.Equal(t, "main", p.Lost.Source)
	require.EqualValues(t, 1, p.Lost.Units)
	require.WithinDuration(t, time.Now(), p.Lost.At(), about)
	require.Equal(t, 1, p.Record.Counted)
	require.Equal(t, 1, p.Record.PossiblyBilled)
	require.EqualValues(t, 1, b.num(mainRecognize, "in_flight"))
	budget := "budget:" + first.Budgets
	require.EqualValues(t, 1, b.num(budget, "spent"), "AudD may have billed the units that the dead worker reserved")
	require.EqualValues(t, 1, b.num(budget, "reserved"))

	b.settle(first, CallReport{Outcome: tasks.UnavailableUnsent, Channel: tasks.ChannelNone})
	require.EqualValues(t, 0, b.num(budget, "spent"), "a late settle corrects the charge")
	b.settle(p, done)
	require.EqualValues(t, 1, b.num(budget, "spent"))
	require.EqualValues(t, 0, b.num(budget, "reserved"))
}

func TestLostAttemptIsReturnedUntilAUsedAttemptReportsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerDay: 10}))
	first := request("recognize_x")
	_, err := b.Acquire(t.Context(), first)
	b.seedAll(err, 0)
	dead := b.acquire(first)
	b.expire(first.Key)
	for range 2 {
		p := b.acquire(request(first.Key))
		require.NotNil(t, p.Lost)
		require.Equal(t, first.AttemptID, p.Lost.AttemptID)
		require.Equal(t, 1, p.Record.Counted, "the lost attempt is counted once")
		b.settle(p, unused)
	}
	p := b.acquire(request(first.Key))
	require.NotNil(t, p.Lost)
	b.settle(p, CallReport{Outcome: tasks.Throttled, Channel: tasks.ChannelExcluded})
	budget := "budget:" + dead.Budgets
	require.EqualValues(t, 1, b.num(budget, "spent"))
	b.settle(dead, CallReport{Outcome: tasks.UnavailableUnsent, Channel: tasks.ChannelNone})
	require.EqualValues(t, 0, b.num(budget, "spent"), "a late settle still corrects the charge")
	b.set(mainRecognize, "throttled_until", 1)
	require.Nil(t, b.acquire(request(first.Key)).Lost)
}

func TestLostAttemptIsReturnedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	first := request("recognize_x")
	b.acquire(first)
	b.expire(first.Key)
	p := b.acquire(request(first.Key))
	require.NotNil(t, p.Lost)
	b.settle(p, failed)
	p = b.acquire(request(first.Key))
	require.Nil(t, p.Lost)
	b.expire(p.Key)
	again := b.acquire(request(first.Key))
	require.NotNil(t, again.Lost)
	require.Equal(t, p.AttemptID, again.Lost.AttemptID)
}

func TestHigherGenerationStartsANewRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.settle(b.acquire(request("recognize_x")), failed)
	r := request("recognize_x")
	r.Generation = 3
	p := b.acquire(r)
	require.Equal(t, tasks.AttemptRecord{Generation: 3}, p.Record)
}

func TestPermitIsValidOnlyWhileConfirmed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := b.acquire(request("recognize_x"))
	p.confirm(time.Now().Add(-11 * time.Second))
	require.ErrorIs(t, p.Valid(), ErrPermitLost)
	require.NoError(t, b.Renew(t.Context()))
	require.NoError(t, p.Valid())
}

func TestRenewalRegistersTheLostPermitOfASentCallAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	sent, waiting := b.acquire(request("recognize_sent")), b.acquire(request("recognize_waiting"))
	require.NoError(t, sent.Valid())
	b.expire(sent.Key)
	b.expire(waiting.Key)
	b.settle(b.acquire(request("recognize_other")), done) // the script sweeps expired permits
	require.EqualValues(t, 0, b.num(mainRecognize, "in_flight"))
	require.NoError(t, b.Renew(t.Context()))
	require.EqualValues(t, 1, b.num(mainRecognize, "in_flight"))
	require.ErrorIs(t, waiting.Valid(), ErrPermitLost)
	_, err := b.Acquire(t.Context(), request(sent.Key))
	var f *InFlight
	require.ErrorAs(t, err, &f, "the call is still in flight")
	b.settle(sent, done)
	require.EqualValues(t, 0, b.num(mainRecognize, "in_flight"))
}

func TestRenewalRegistersSentCallsAgainAfterDataLoss(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := b.acquire(request("recognize_x"))
	require.NoError(t, p.Valid())
	require.NoError(t, b.rdb.FlushDB(t.Context()).Err())
	require.NoError(t, b.Renew(t.Context()))
	_, err := b.Acquire(t.Context(), request(p.Key))
	var f *InFlight
	require.ErrorAs(t, err, &f)
	b.settle(p, done)
	b.settle(b.acquire(request(p.Key)), done)
	require.EqualValues(t, 0, b.num(mainRecognize, "in_flight"))
}

func TestConcurrencyLimitsAllWorkersTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{Concurrency: 2}))
	other := benchOn(t, b.rdb, oneSource(Limits{Concurrency: 2}))
	first := b.acquire(request(keyOf(1)))
	other.acquire(request(keyOf(2)))
	ref := b.refused(request(keyOf(3)))
	require.Equal(t, GateConcurrency, ref.Gate)
	require.Equal(t, "main", ref.Source)
	require.False(t, ref.AllBlocked)
	require.Positive(t, ref.RetryAfter)
	b.settle(first, done)
	b.acquire(request(keyOf(3)))
}

func TestGlobalConcurrencyCountsAllPaths(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Global.Concurrency = 1 })
	b.acquire(request(keyOf(1)))
	r := request("enterprise_x")
	r.Path = tasks.Enterprise
	require.Equal(t, GateGlobalConcurrency, b.refused(r).Gate)
}

func TestCancelledAcquireReleasesItsPermit(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		c.Paths = map[tasks.Path]Limits{tasks.Recognize: {RequestsPerMinute: 60}}
		c.Lookahead = time.Second
	})
	for i := 1; ; i++ {
		b.set(mainRecognize, "requests_arrival_us", 0)
		b.settle(b.acquire(request(keyOf(0))), done)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		p, err := b.Acquire(ctx, request(keyOf(i)))
		if err == nil && i < 50 { // on a busy machine the start may have passed
			b.settle(p, done)
			continue
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, b.Close())
		require.EqualValues(t, 0, b.num(mainRecognize, "in_flight"))
		require.Equal(t, "0", b.rec(keyOf(i), "possibly_billed"))
		break
	}
}

func TestIncompleteRequestIsRejected(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	_, err := b.Acquire(t.Context(), Request{Path: tasks.Recognize})
	require.ErrorContains(t, err, "AttemptID")
	r := request("x")
	r.Path = "other"
	_, err = b.Acquire(t.Context(), r)
	require.ErrorContains(t, err, "other")
}

func TestTaskWithAVerdictIsNotAdmitted(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	r := request(keyOf(0))
	r.Generation = 2
	require.NoError(t, b.rdb.HSet(t.Context(), EndedKey(b.cfg.Prefix), EndedField(r.Key, 2), "attempt-of-another-worker").Err())
	_, err := b.Acquire(t.Context(), r)
	require.ErrorIs(t, err, ErrTaskEnded)
	require.Zero(t, b.num(mainRecognize, "in_flight"))
	r.Generation = 3 // the task was reopened
	b.acquire(r)
}
