package intake

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

func TestInputThatCannotBecomeATaskIsRefusedWithItsOwnReason(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := "https://h/x?sig=" + strings.Repeat("s", tasks.MaxURL)
	p := b.plan(Request{}, long)
	require.Equal(t, "cannot be queued: input url: must be at most 8192 bytes of UTF-8", p.Items[0].Reason)
	p = b.plan(Request{Path: tasks.Enterprise, Params: tasks.Params{UseTimecode: true}}, b.file("a.wav", "1"))
	require.Equal(t, "cannot be queued: use_timecode: only for a URL", p.Items[0].Reason)
}

func TestRepeatedEnqueueOfAPlanRetriesFailedItems(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.plan(Request{}, b.file("a.wav", "1"), b.file("same.wav", "1"), b.file("b.wav", "2"))
	unreachable := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer unreachable.Close()
	down, err := New(Options{Redis: unreachable, Store: b.store})
	require.NoError(t, err)
	require.NoError(t, down.Enqueue(t.Context(), p, nil))
	require.Equal(t, []Status{Failed, Failed, Failed}, statuses(p))
	require.Contains(t, p.Items[0].Reason, "could not be queued: ")

	require.NoError(t, b.Enqueue(t.Context(), p, nil))
	require.Equal(t, []Status{Queued, SameContent, Queued}, statuses(p))
	require.Empty(t, p.BadItems())
	require.Equal(t, 2, b.counts().Pending)
}
