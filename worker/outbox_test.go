package worker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/store"
	"reprise/tasks"
)

// Regression: one settlement that the store refused blocked all later ones.
func TestSettlementThatCannotBeStoredIsSetAside(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, nil)
	const entries, rejected = "reprise:{adm}:outbox", "reprise:{adm}:outbox:rejected"
	put := func(id string, s store.Settlement) {
		raw, err := json.Marshal(map[string]any{"Settlement": s})
		require.NoError(t, err)
		require.NoError(t, r.rdb.HSet(t.Context(), entries, id, raw).Err())
	}
	good, bad := r.clip("good.wav"), r.clip("bad.wav")
	put("contradiction", store.Settlement{Key: bad.Key, Path: tasks.Recognize, Queue: "recognize", Verdict: tasks.Archive, Outcome: tasks.Quota, At: time.Now()})
	put("fine", store.Settlement{
		Key: good.Key, Path: tasks.Recognize, Queue: "recognize", Verdict: tasks.Done, Outcome: tasks.NoMatch, Finished: true, Result: json.RawMessage("null"), At: time.Now(),
	})
	require.NoError(t, r.rdb.HSet(t.Context(), entries, "garbage", "{not JSON").Err())
	kept := r.clip("kept.wav") // its verdict is in the garbage
	require.NoError(t, r.rdb.HSet(t.Context(), "reprise:{adm}:ended", admission.EndedField(kept.Key, 0), "garbage").Err())
	r.enqueue(kept)
	r.run()
	r.verdict(kept, 20*time.Second) // the verdict is unreadable and is dropped
	require.Equal(t, tasks.NoMatch, r.verdict(good, 20*time.Second).Outcome)
	require.True(t, eventually(10*time.Second, func() bool { return r.rdb.HLen(t.Context(), entries).Val() == 0 }))
	left, err := r.rdb.HKeys(t.Context(), rejected).Result()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"contradiction", "garbage"}, left)
	require.Contains(t, r.log.String(), "a settlement that cannot be stored was set aside")
}
