package intake

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/tasks"
)

func TestNextIDAssignsOneIDToTheSameContent(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a, twin, c := b.file("a.wav", "1"), b.file("twin.wav", "1"), b.file("c.wav", "2")
	p := b.enqueue(assigning(), a, twin, c)
	require.Equal(t, []Status{Queued, SameContent, Queued}, statuses(p))
	require.Equal(t, []int64{1, 1, 2}, b.ids(p))
	rows, err := b.store.Batch(t.Context(), p.Batch)
	require.NoError(t, err)
	require.Len(t, rows, 3)

	again := b.enqueue(assigning(), c, twin, b.file("d.wav", "4"))
	require.Equal(t, []Status{AlreadyQueued, AlreadyQueued, Queued}, statuses(again))
	require.Equal(t, []int64{2, 1, 3}, b.ids(again))
	for _, it := range []Item{p.Items[0], p.Items[2], again.Items[2]} {
		b.conclude(it, b.latch(it), tasks.LatchSettled, doneUpload)
	}
	settled := b.enqueue(assigning(), a, twin, c)
	require.Equal(t, []Status{AlreadyDone, AlreadyDone, AlreadyDone}, statuses(settled))
	require.Equal(t, []int64{1, 1, 2}, b.ids(settled))
}

func TestNextIDReusesTheSlotOfTheSameContent(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a, c := b.file("a.wav", "1"), b.file("c.wav", "2")
	b.enqueue(one(70), a)
	p := b.enqueue(assigning(), a, c)
	require.Equal(t, []int64{70, 71}, b.ids(p), "a new id is above every known one")
	other := assigning()
	other.Params.Source = "spare"
	require.Equal(t, []int64{1}, b.ids(b.enqueue(other, a)), "another account has slots of its own")

	b.enqueue(replacing(70), c)
	p = b.enqueue(assigning(), a)
	require.Equal(t, []Status{Queued}, statuses(p))
	require.Equal(t, []int64{72}, b.ids(p), "its old slot holds other content now")

	d := b.file("d.wav", "5")
	m := manifest(t, "audio_id,file\n,d.wav\n90,d.wav\n")
	m.rows[0].path, m.rows[1].path = d, d
	mixed, err := b.PlanManifest(t.Context(), assigning(), m, nil)
	require.NoError(t, err)
	require.NoError(t, b.Enqueue(t.Context(), mixed, nil))
	require.Equal(t, []int64{90, 90}, b.ids(mixed), "another row of the same content has the id")
	require.Equal(t, []Status{Queued, SameContent}, statuses(mixed))
}

func TestNextIDRefusesURLs(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	p := b.plan(assigning(), "https://h/a.wav")
	require.Equal(t, []Status{Refused}, statuses(p))
	require.Contains(t, p.Items[0].Reason, "is a URL without an audio_id: set one")
}

func TestConcurrentRunsQueueAnUploadOnce(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a, c := b.file("a.wav", "1"), b.file("c.wav", "2")
	plans := make([]*Plan, 5)
	for i := range plans { // all are planned before one is enqueued
		plans[i] = b.plan(assigning(), a, c)
	}
	var wg sync.WaitGroup
	for _, p := range plans {
		wg.Go(func() { require.NoError(t, b.Enqueue(t.Context(), p, nil)) })
	}
	wg.Wait()
	require.Equal(t, 2, b.queued().Pending)
	want := b.ids(plans[0])
	for _, p := range plans {
		require.Equal(t, want, b.ids(p))
		require.Subset(t, []Status{Queued, AlreadyQueued}, statuses(p))
	}
	var slots []int64
	require.NoError(t, b.entries(t.Context(), idempotency.Filter{}, func(e idempotency.Entry) error { slots = append(slots, e.AudioID); return nil }))
	require.ElementsMatch(t, want, slots, "only the first claim of a content leaves a slot")
	later := b.enqueue(assigning(), a, c)
	require.Equal(t, []Status{AlreadyQueued, AlreadyQueued}, statuses(later))
	require.Equal(t, want, b.ids(later))
	require.Equal(t, 2, b.queued().Pending)
}
