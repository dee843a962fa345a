package upkeep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/tasks"
)

func TestHeldUploadIsSettledWithTheReasonOfTheLedger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	resolved, verified := r.task(tasks.Upload, 1), r.task(tasks.Upload, 2)
	for _, p := range []tasks.Payload{resolved, verified} {
		r.sent(p, time.Now().Add(-time.Hour))
		_, err := r.ledger.Expire(t.Context(), p.Key, time.Now())
		require.NoError(t, err)
		r.settle(p, tasks.Hold, tasks.Crash)
	}
	_, err := r.ledger.Resolve(t.Context(), resolved.Key, idempotency.AsSettled, idempotency.Action{By: "ada", Why: "it is there", At: time.Now()})
	require.NoError(t, err)
	_, err = r.ledger.Verified(t.Context(), idempotency.Verification{Key: verified.Key, Hit: verified.Params.AudioID, At: time.Now()})
	require.NoError(t, err)
	v := &Verifier{Ledger: r.ledger, Queues: r.queues, Store: r.store, Log: r.slog, Warn: r.warn}
	require.NoError(t, v.settleArrived(t.Context()))
	for key, reason := range map[string]string{resolved.Key: "uploaded: resolved by ada", verified.Key: "uploaded: verified by recognition"} {
		st, err := r.store.TaskStatus(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, tasks.Done, st.Verdict)
		require.Equal(t, reason, st.Reason)
	}
}
