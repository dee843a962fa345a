package idempotency_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/tasks"
)

// doubtful creates an uncertain upload in slot n with verify policy v.
func doubtful(t *testing.T, l *idempotency.Ledger, n int64, v idempotency.Verify) {
	t.Helper()
	a := attempt(n, "a")
	a.Verify = v
	latch(t, l, a)
	conclude(t, l, "a", tasks.LatchUncertain) // at start + 1 min
}

func turn(n int64, after time.Duration) idempotency.VerifyRequest {
	return idempotency.VerifyRequest{Key: attempt(n, "").Key, Delay: 5 * time.Minute, Tries: 2, At: start.Add(after)}
}

func begin(t *testing.T, l *idempotency.Ledger, tn idempotency.VerifyRequest) bool {
	t.Helper()
	mine, err := l.BeginVerify(context.Background(), tn)
	require.NoError(t, err)
	return mine
}

func verified(t *testing.T, l *idempotency.Ledger, n int64, hit *int64) idempotency.State {
	t.Helper()
	st, err := l.Verified(context.Background(), idempotency.Verification{
		Key: attempt(n, "").Key, Hit: hit, RequestID: "r", At: start.Add(time.Hour),
	})
	require.NoError(t, err)
	return st.State
}

func TestVerificationStartsOncePerDelayUpToTheLimit(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	doubtful(t, l, 1, idempotency.VerifyRecognize)
	require.False(t, begin(t, l, turn(1, 6*time.Minute-time.Millisecond)), "AudD still indexes the upload")
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			mine, err := l.BeginVerify(context.Background(), turn(1, 6*time.Minute))
			if err != nil {
				t.Error(err)
			}
			if mine {
				taken.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(1), taken.Load(), "each verification costs a unit")
	require.True(t, begin(t, l, turn(1, 11*time.Minute)), "the first verification was lost in a crash")
	require.False(t, begin(t, l, turn(1, time.Hour)), "the limit is two verifications")
	require.Equal(t, 2, look(t, l, "k1").Send.Tries)
	_, err := l.BeginVerify(context.Background(), idempotency.VerifyRequest{Key: "k1"})
	require.ErrorIs(t, err, idempotency.ErrInvalid)
}

func TestOnlyUncertainUploadsWithVerifyRecognizeAreVerified(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	doubtful(t, l, 1, idempotency.VerifyHold)
	require.False(t, begin(t, l, turn(1, time.Hour)))
	require.False(t, begin(t, l, turn(99, time.Hour)))
	inState(t, l, 2, idempotency.Settled)
	require.False(t, begin(t, l, turn(2, time.Hour)))
	id := int64(2)
	require.Equal(t, idempotency.Settled, verified(t, l, 2, &id))
	require.Empty(t, show(t, l, "k2").Trail)
}

func TestRecognizedAudioIDSettlesTheUpload(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	doubtful(t, l, 7, idempotency.VerifyRecognize)
	same, otherID := int64(7), int64(8)
	require.Equal(t, idempotency.Uncertain, verified(t, l, 7, nil))
	require.Equal(t, idempotency.Uncertain, verified(t, l, 7, &otherID))
	require.Equal(t, idempotency.Settled, verified(t, l, 7, &same))
	var what []string
	for _, a := range show(t, l, "k7").Trail {
		what = append(what, a.What)
	}
	require.Equal(t, []string{"not verified", "not verified", "verified"}, what)
}

func TestRecognitionDoesNotSettleASharedSlot(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	old := other(7, "old", false)
	claim(t, l, old)
	latch(t, l, attemptFor(old, "o"))
	conclude(t, l, "o", tasks.LatchSettled)
	c := claimOf(7)
	c.Replace, c.By = true, "mia"
	claim(t, l, c)
	doubtful(t, l, 7, idempotency.VerifyRecognize)
	require.False(t, begin(t, l, turn(7, time.Hour)))
	require.False(t, begin(t, l, turn(7, time.Hour)))
	id := int64(7)
	require.Equal(t, idempotency.Uncertain, verified(t, l, 7, &id))
	trail := show(t, l, "k7").Trail
	require.Equal(t, []string{"takes the slot from old", "not verifiable", "not verified"}, []string{trail[0].What, trail[1].What, trail[2].What})
}
