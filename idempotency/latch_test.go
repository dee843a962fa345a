package idempotency_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/tasks"
)

func TestFirstAttemptLatchesAndTheSecondIsTaken(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	require.NoError(t, look(t, l, "k1").MaySend(start), "an unknown key may be sent")
	got := latch(t, l, attempt(1, "a"))
	require.Zero(t, got.Generation)
	require.Equal(t, idempotency.Mark{Ledger: l.ID(), Seq: 1, Token: "a"}, got.Mark)

	taken := refused[*idempotency.TakenError](t, l, attempt(1, "b"))
	require.Equal(t, "a", taken.Send.AttemptID)
	require.Equal(t, idempotency.Sent, taken.Send.State)
	require.Equal(t, start, taken.Send.SentAt)
	require.Equal(t, start.Add(timeout+margin), taken.Until)
	st := look(t, l, "k1")
	require.Equal(t, idempotency.Sent, st.State)
	require.Equal(t, taken, st.MaySend(start), "Status and Latch must agree")
	require.Equal(t, start.Add(timeout+margin), st.Until)
	require.Equal(t, int64(2), latch(t, l, attempt(2, "c")).Mark.Seq)
}

func TestOnlyAFreeOrReleasedUploadCanBeLatched(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	for n, s := range idempotency.States {
		inState(t, l, int64(n), s)
		a := attempt(int64(n), fmt.Sprintf("next%d", n))
		switch s {
		case idempotency.Free:
			require.Zero(t, latch(t, l, a).Generation)
		case idempotency.Released:
			require.Equal(t, int64(1), latch(t, l, a).Generation, "a release allows the next generation")
		default:
			require.Equal(t, s, refused[*idempotency.TakenError](t, l, a).Send.State)
		}
	}
}

func TestRepeatedLatchOfAnAttemptGetsTheSameMark(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	first := latch(t, l, attempt(1, "a"))
	again := attempt(1, "a")
	again.At = start.Add(3 * time.Second)
	got := latch(t, l, again)
	require.Equal(t, first.Mark, got.Mark)
	require.NoError(t, got.Fresh(start.Add(5*time.Second)))
	require.Error(t, got.Fresh(start.Add(6*time.Second)), "the time counts from the first latch")

	other := attempt(2, "a")
	_, err := l.Latch(context.Background(), other)
	require.ErrorIs(t, err, idempotency.ErrInvalid, "an attempt id belongs to one upload")
	conclude(t, l, "a", tasks.LatchReleased)
	require.Equal(t, idempotency.Released, refused[*idempotency.TakenError](t, l, attempt(1, "a")).Send.State,
		"an attempt that was concluded never sends again")
	require.Equal(t, int64(1), latch(t, l, attempt(1, "b")).Generation)
}

func TestInvalidLatchRequestIsRejected(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	latch(t, l, attempt(1, "a"))
	conclude(t, l, "a", tasks.LatchReleased)
	for _, change := range []func(*idempotency.LatchRequest){
		func(a *idempotency.LatchRequest) { a.SHA256 = "other" },
		func(a *idempotency.LatchRequest) { a.AudioID = 9 },
		func(a *idempotency.LatchRequest) { a.Source = "other" },
		func(a *idempotency.LatchRequest) { a.Timeout = 0 },
		func(a *idempotency.LatchRequest) { a.AttemptID = "" },
		func(a *idempotency.LatchRequest) { a.AudioID = -1 },
		func(a *idempotency.LatchRequest) { a.At = time.Time{} },
		func(a *idempotency.LatchRequest) { a.Verify = "maybe" },
	} {
		a := attempt(1, "b")
		change(&a)
		_, err := l.Latch(context.Background(), a)
		require.ErrorIs(t, err, idempotency.ErrInvalid)
	}
}

func TestLatchStalenessUsesTheLargerOfWallAndMonotonicTime(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	got := latch(t, l, attempt(1, "a"))
	require.NoError(t, got.Fresh(start))
	require.NoError(t, got.Fresh(start.Add(5*time.Second)))
	var stale *idempotency.StaleError
	require.ErrorAs(t, got.Fresh(start.Add(5*time.Second+1)), &stale)
	require.Equal(t, 5*time.Second, stale.Limit)
	require.Error(t, got.Fresh(start.Add(-time.Millisecond)), "a clock that was set back cannot be trusted")

	// Round(0) removes the monotonic reading that time.Now adds.
	a := attempt(2, "b")
	a.At = time.Now()
	got = latch(t, l, a)
	require.NoError(t, got.Fresh(a.At.Add(time.Second)))
	require.Error(t, got.Fresh(a.At.Add(6*time.Second)))
	require.Error(t, got.Fresh(a.At.Round(0).Add(6*time.Second)), "only the wall clock advances while the machine sleeps")
}

func TestSendExpiresAfterTimeoutAndMargin(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	latch(t, l, attempt(1, "a"))
	require.Equal(t, idempotency.Sent, expire(t, l, "k1", timeout+margin-time.Millisecond).State)
	st := expire(t, l, "k1", timeout+margin)
	require.Equal(t, idempotency.Uncertain, st.State)
	require.Contains(t, st.Send.Reason, "crash: ")
	require.Equal(t, st, expire(t, l, "k1", timeout+2*margin), "once")
	require.Equal(t, idempotency.Uncertain, refused[*idempotency.TakenError](t, l, attempt(1, "b")).Send.State)
	require.Equal(t, idempotency.Free, expire(t, l, "nobody", 0).State)
	for n, s := range []idempotency.State{idempotency.Settled, idempotency.Rejected, idempotency.Free} {
		inState(t, l, int64(10+n), s)
		require.Equal(t, s, expire(t, l, fmt.Sprintf("k%d", 10+n), time.Hour).State)
	}
}

func TestLatchWaitsWhileOtherContentIsSentToTheSlot(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	latch(t, l, attempt(1, "a"))
	other := claimOf(1)
	other.Key, other.SHA256, other.Replace, other.By = "kx", "shax", true, "mia"
	require.NoError(t, claim(t, l, other).Refused)

	x := attempt(1, "x")
	x.Key, x.SHA256 = "kx", "shax"
	busy := refused[*idempotency.SlotBusyError](t, l, x)
	require.Equal(t, &idempotency.SlotBusyError{Source: "main", AudioID: 1, Key: "k1", Until: start.Add(timeout + margin)}, busy)
	require.Equal(t, busy, look(t, l, "kx").MaySend(start))
	require.NoError(t, look(t, l, "kx").MaySend(busy.Until))
	conclude(t, l, "a", tasks.LatchReleased)
	latch(t, l, x)
	taken := refused[*idempotency.SlotTakenError](t, l, attempt(1, "b"))
	require.Equal(t, "kx", taken.Slot.Key)
	require.Equal(t, taken, look(t, l, "k1").MaySend(start))
}
