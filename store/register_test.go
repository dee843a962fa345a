package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

func submission(id, batch, key string) store.Submission {
	return store.Submission{
		ID: id, Batch: batch, Key: key, Path: tasks.Recognize, ExternalID: "ext-" + id, Name: id + ".mp3",
		Metadata: []byte(`{"n":1}`), Payload: []byte("payload of " + key), At: start,
	}
}

func TestRegisterReturnsTheStatusOfEachKey(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	require.NoError(t, s.Settle(ctx, attempt("done", 0, "a", tasks.Done, tasks.Match, 1)))
	tomb := attempt("tomb", 0, "b", tasks.Archive, tasks.InvalidAudio, 2)
	tomb.Final = true
	require.NoError(t, s.Settle(ctx, tomb))

	batch := []store.Submission{submission("s1", "b", "new"), submission("s2", "b", "done"), submission("s3", "b", "tomb"), submission("s4", "b", "new")}
	for range 2 { // the second run repeats the first, as after a crash
		got, err := s.Register(ctx, batch)
		require.NoError(t, err)
		require.Len(t, got, 4)
		require.True(t, got[0].Known)
		require.False(t, got[0].Finished)
		require.Equal(t, start, got[0].CreatedAt)
		require.JSONEq(t, `{"by":"a"}`, string(got[1].Result))
		require.True(t, got[2].Final)
		require.Equal(t, tasks.InvalidAudio, got[2].Outcome)
		require.Equal(t, "invalid_audio of b", got[2].Reason)
		require.Equal(t, got[0], got[3], "two submissions share one task")
	}
	rows, err := s.Batch(ctx, "b")
	require.NoError(t, err)
	require.Len(t, rows, 4)
	want := batch[1]
	want.Payload, want.Cached, want.Queue = nil, true, "recognize"
	require.Equal(t, want, rows[1].Submission)
	require.False(t, rows[0].Submission.Cached)

	for _, unknown := range []string{"", "nobody"} {
		rows, err = s.Batch(ctx, unknown)
		require.NoError(t, err)
		require.Empty(t, rows, "an unknown batch is empty")
	}

	progress, err := s.BatchProgress(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, store.Progress{Total: 4, Waiting: 2, Done: 1, Archived: 1, Cached: 1,
		Outcomes: map[tasks.Outcome]int64{tasks.Match: 1, tasks.InvalidAudio: 1}}, progress)
}

func TestRegisterKeepsTheNewestPayloadAndTheFirstQueue(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	first, second, third := submission("s1", "b", "k"), submission("s2", "b", "k"), submission("s3", "b", "k")
	first.Queue, second.Queue = "recognize.live", "recognize.backfill"
	second.Payload, third.Payload = []byte("signed anew"), nil
	_, err := s.Register(ctx, []store.Submission{first, second, third})
	require.NoError(t, err)
	payload, err := s.Payload(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "signed anew", string(payload))
	require.Equal(t, "recognize.live", status(t, s, "k").Queue)
	_, err = s.Payload(ctx, "nobody")
	require.ErrorIs(t, err, store.ErrUnknownKey)
}

func TestRegisterDoesNotMarkFreshSubmissionsAsCached(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	require.NoError(t, s.Settle(ctx, attempt("k", 0, "a", tasks.Done, tasks.Match, 1)))
	sub := submission("s", "b", "k")
	sub.Fresh = true
	_, err := s.Register(ctx, []store.Submission{sub})
	require.NoError(t, err)
	rows, err := s.Submissions(ctx, store.SubmissionFilter{ExternalID: "ext-s"})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.False(t, rows[0].Submission.Cached)
}

func TestBatchReturnsLargeBatchesCompletelyAndInOrder(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	const n = 1100 // more than the default limit of a list
	subs := make([]store.Submission, n)
	for i := range subs {
		subs[i] = submission(fmt.Sprintf("s%05d", i), "big", fmt.Sprintf("k%d", i/2))
		subs[i].At = start.Add(time.Duration(i/100) * time.Millisecond)
	}
	statuses, err := s.Register(ctx, subs)
	require.NoError(t, err)
	require.Len(t, statuses, n)
	rows, err := s.Batch(ctx, "big")
	require.NoError(t, err)
	require.Len(t, rows, n)
	for i, row := range rows {
		require.Equal(t, subs[i].ID, row.Submission.ID)
	}
	byKey, err := s.Submissions(ctx, store.SubmissionFilter{Key: "k7"})
	require.NoError(t, err)
	require.Len(t, byKey, 2)
}

func TestRegisterRejectsInvalidSubmissions(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for name, spoil := range map[string]func(*store.Submission){
		"no id":             func(sub *store.Submission) { sub.ID = "" },
		"no batch":          func(sub *store.Submission) { sub.Batch = "" },
		"no key":            func(sub *store.Submission) { sub.Key = "" },
		"no path":           func(sub *store.Submission) { sub.Path = "" },
		"no time":           func(sub *store.Submission) { sub.At = time.Time{} },
		"metadata not JSON": func(sub *store.Submission) { sub.Metadata = []byte("{") },
	} {
		sub := submission("s", "b", "k")
		sub.Payload = []byte("https://x/y?X-Amz-Signature=secret")
		spoil(&sub)
		_, err := s.Register(context.Background(), []store.Submission{sub})
		require.ErrorIs(t, err, store.ErrInvalid, name)
		require.NotContains(t, err.Error(), "secret", name)
	}
	require.False(t, status(t, s, "k").Known)
}
