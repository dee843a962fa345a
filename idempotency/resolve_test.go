package idempotency_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/tasks"
)

var both = []idempotency.Resolution{idempotency.AsSettled, idempotency.AsRetry}

func TestOnlyUncertainUploadsAreResolved(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	ctx := context.Background()
	for i, s := range idempotency.States {
		n := int64(i)
		inState(t, l, n, s)
		for _, as := range both {
			got, err := l.Resolve(ctx, attempt(n, "").Key, as, act(time.Minute))
			switch {
			case s == idempotency.Settled && as == idempotency.AsSettled:
				require.NoError(t, err)
				require.True(t, got.Already)
			case s == idempotency.Sent:
				var early *idempotency.TooEarlyError
				require.ErrorAs(t, err, &early)
				require.Equal(t, start.Add(timeout+margin), early.Until, "the send may still be in flight")
			case s == idempotency.Uncertain && as == idempotency.AsRetry:
				var not *idempotency.NotResolvableError
				require.ErrorAs(t, err, &not, "the previous iteration resolved the upload")
			case s == idempotency.Uncertain:
				require.NoError(t, err)
			default:
				var not *idempotency.NotResolvableError
				require.ErrorAs(t, err, &not, "%s as %s", s, as)
			}
		}
	}
	_, err := l.Resolve(ctx, "nobody", idempotency.AsRetry, act(0))
	require.ErrorIs(t, err, idempotency.ErrUnknownKey)
	_, err = l.Resolve(ctx, "k1", "maybe", act(0))
	require.ErrorIs(t, err, idempotency.ErrInvalid)
	_, err = l.Resolve(ctx, "k1", idempotency.AsRetry, idempotency.Action{By: "mia", At: start})
	require.ErrorIs(t, err, idempotency.ErrInvalid, "a reason is required")
}

func TestRetryWaitsUntilTheEarlierSendIsOverAndIsAudited(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	ctx := context.Background()
	inState(t, l, 1, idempotency.Uncertain)
	_, err := l.Resolve(ctx, "k1", idempotency.AsRetry, act(timeout+retryWait-time.Millisecond))
	var early *idempotency.TooEarlyError
	require.ErrorAs(t, err, &early)
	require.Equal(t, start.Add(timeout+retryWait), early.Until)
	require.Empty(t, show(t, l, "k1").Trail)

	got, err := l.Resolve(ctx, "k1", idempotency.AsRetry, act(timeout+retryWait))
	require.NoError(t, err)
	require.Equal(t, idempotency.Resolved{Generation: 1}, got)
	again, err := l.Resolve(ctx, "k1", idempotency.AsRetry, act(time.Hour))
	require.NoError(t, err)
	require.Equal(t, idempotency.Resolved{Generation: 1, Already: true}, again, "a repeated resolution allows one retry only")
	require.Equal(t, []idempotency.Audit{{
		N: 1, At: start.Add(timeout + retryWait), Who: "mia", What: "resolve as retry", Why: "looked it up", Key: "k1",
	}}, show(t, l, "k1").Trail)
	require.Equal(t, int64(1), latch(t, l, attempt(1, "b")).Generation)
}

// The worker crashed after its latch and Redis lost the task, so no worker concludes the send.
func TestOperatorResolvesASendWithoutAConclusion(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	ctx := context.Background()
	inState(t, l, 1, idempotency.Sent)
	inState(t, l, 2, idempotency.Sent)
	_, err := l.Resolve(ctx, "k1", idempotency.AsSettled, act(timeout+margin))
	require.NoError(t, err)
	require.Equal(t, idempotency.Settled, look(t, l, "k1").State)
	_, err = l.Resolve(ctx, "k2", idempotency.AsRetry, act(timeout+margin))
	require.Error(t, err)
	_, err = l.Resolve(ctx, "k2", idempotency.AsRetry, act(timeout+retryWait))
	require.NoError(t, err)
	require.Equal(t, idempotency.Uncertain, show(t, l, "k2").Sends[0].State)
	got, err := l.Resolve(ctx, "k1", idempotency.AsSettled, act(time.Hour))
	require.NoError(t, err)
	require.True(t, got.Already)
}

func TestListSelectsUploadsByStateSourceSlotAndTime(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	ctx := context.Background()
	for n := range int64(4) {
		a := attempt(n, attempt(n, "").Key)
		a.At = start.Add(time.Duration(n) * time.Minute)
		if n == 2 {
			a.Source = "elsewhere"
		}
		latch(t, l, a)
		conclude(t, l, a.AttemptID, tasks.LatchUncertain)
	}
	for n, key := range []string{"k0", "k1"} {
		_, err := l.Resolve(ctx, key, idempotency.AsRetry, act(timeout+retryWait+time.Minute))
		require.NoError(t, err, "resolution %d", n)
	}
	var early *idempotency.TooEarlyError
	_, err := l.Resolve(ctx, "k3", idempotency.AsRetry, act(timeout+retryWait+time.Minute))
	require.ErrorAs(t, err, &early)

	list := func(f idempotency.Filter) (keys []string) {
		found, err := l.List(ctx, f)
		require.NoError(t, err)
		for _, e := range found {
			keys = append(keys, e.Key)
		}
		return keys
	}
	require.Equal(t, []string{"k2", "k3"}, list(idempotency.Filter{States: []idempotency.State{idempotency.Uncertain}}), "a retried upload is not uncertain")
	require.Equal(t, []string{"k0", "k1"}, list(idempotency.Filter{States: []idempotency.State{idempotency.Free}}))
	require.Equal(t, []string{"k1", "k2"}, list(idempotency.Filter{AudioIDs: []int64{1, 2}}))
	require.Equal(t, []string{"k2"}, list(idempotency.Filter{SentFrom: start.Add(2 * time.Minute), SentBefore: start.Add(3 * time.Minute), Verify: idempotency.VerifyHold}))
	require.Equal(t, []string{"k1", "k2"}, list(idempotency.Filter{After: "k0", Limit: 2}))
	require.Len(t, list(idempotency.Filter{}), 4)
	counts, err := l.Count(ctx, idempotency.Filter{After: "k2", Limit: 1})
	require.NoError(t, err)
	require.Equal(t, map[idempotency.State]int64{idempotency.Uncertain: 2, idempotency.Free: 2}, counts)
}

func TestReopenAcceptsOnlySettledAndRejectedUploads(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	ctx := context.Background()
	for i, s := range idempotency.States {
		n := int64(i)
		inState(t, l, n, s)
		key := attempt(n, "").Key
		generation, err := l.Reopen(ctx, key, 0, act(time.Minute))
		switch s {
		case idempotency.Settled, idempotency.Rejected:
			require.NoError(t, err)
			require.Equal(t, int64(1), generation)
			generation, err = l.Reopen(ctx, key, 0, act(time.Minute))
			require.NoError(t, err)
			require.Equal(t, int64(1), generation, "once")
			require.Equal(t, "reopen", show(t, l, key).Trail[0].What)
		case idempotency.Free, idempotency.Released:
			require.NoError(t, err)
			require.Equal(t, look(t, l, key).Generation, generation)
		default:
			var not *idempotency.NotResolvableError
			require.ErrorAs(t, err, &not, string(s))
		}
	}
	inState(t, l, 20, idempotency.Uncertain)
	_, err := l.Resolve(ctx, "k20", idempotency.AsSettled, act(time.Minute))
	require.NoError(t, err)
	var early *idempotency.TooEarlyError
	_, err = l.Reopen(ctx, "k20", 0, act(timeout))
	require.ErrorAs(t, err, &early, "the call may still run after an operator settled the upload")
	_, err = l.Reopen(ctx, "k20", 0, act(timeout+retryWait))
	require.NoError(t, err)
	_, err = l.Reopen(ctx, "nobody", 0, act(0))
	require.ErrorIs(t, err, idempotency.ErrUnknownKey)
}

func TestShowReturnsTheSendsAndTheAuditTrail(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	ctx := context.Background()
	_, err := l.Show(ctx, "nobody")
	require.ErrorIs(t, err, idempotency.ErrUnknownKey)
	inState(t, l, 1, idempotency.Rejected)
	s, found, err := l.SendByAttempt(ctx, "a1")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, idempotency.Send{
		Key: "k1", AttemptID: "a1", Seq: 1, Source: "main", AudioID: 1, SHA256: "sha1", State: idempotency.Rejected, SentAt: start,
		Timeout: timeout, EndedAt: start.Add(time.Minute), Outcome: "invalid_audio", Reason: "invalid_audio", RequestID: "req-a1",
		Verify: idempotency.VerifyHold,
	}, s)
	d := show(t, l, "k1")
	require.Equal(t, []idempotency.Send{s}, d.Sends)
	found1, err := l.List(ctx, idempotency.Filter{})
	require.NoError(t, err)
	require.Equal(t, []idempotency.Entry{{
		Key: "k1", Source: "main", AudioID: 1, SHA256: "sha1", State: idempotency.Rejected, Since: start, Send: s,
		Owner: idempotency.Slot{Source: "main", AudioID: 1, Key: "k1", SHA256: "sha1", Since: start},
	}}, found1)
	require.Equal(t, found1[0], d.Status.Entry)
}
