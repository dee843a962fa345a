package intake

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

// catalogBench is a bench with the upload ledger.
type catalogBench struct {
	*bench
	ledger *idempotency.Ledger
	sends  int
}

func setupUploads(t *testing.T) *catalogBench {
	t.Helper()
	b := &catalogBench{bench: setup(t)}
	var err error
	b.ledger, err = idempotency.New(t.Context(), b.store.DB(), idempotency.DefaultConfig())
	require.NoError(t, err)
	b.Intake, err = New(Options{Redis: b.rdb, Store: b.store, Ledger: b.ledger, Now: func() time.Time { return b.now }})
	require.NoError(t, err)
	return b
}

// one is a request for a file with an audio_id.
func one(id int64) Request {
	return Request{Path: tasks.Upload, Params: tasks.Params{Source: "main", AudioID: &id}, By: "ann"}
}

func replacing(id int64) Request { r := one(id); r.Replace = true; return r }
func forcing(id int64) Request   { r := one(id); r.Force = true; return r }
func allotting() Request {
	return Request{Path: tasks.Upload, Params: tasks.Params{Source: "main"}, NextID: true, By: "ann"}
}

func (b *catalogBench) manifest(text string) *Plan {
	b.t.Helper()
	m := manifest(b.t, text)
	for i := range m.rows {
		m.rows[i].path = m.dirless(i, b.dir)
	}
	return b.planOf(m)
}

// dirless moves a row's file from the manifest's folder of the tests to dir.
func (m *Manifest) dirless(i int, dir string) string {
	const folder = "/catalog/"
	if p := m.rows[i].path; len(p) > len(folder) {
		return dir + "/" + p[len(folder):]
	}
	return ""
}

func (b *catalogBench) planOf(m *Manifest) *Plan {
	b.t.Helper()
	p, err := b.PlanManifest(b.t.Context(), Request{Path: tasks.Upload, Params: tasks.Params{Source: "main"}}, m, nil)
	require.NoError(b.t, err)
	return p
}

func (b *catalogBench) queued() redistest.Counts {
	b.t.Helper()
	c, err := redistest.CountTasks(b.t.Context(), b.rdb, "upload")
	require.NoError(b.t, err)
	return c
}

func (b *catalogBench) ids(p *Plan) (ids []int64) {
	for i := range p.Items {
		id, ok := p.Items[i].AudioID()
		if !ok {
			id = -1
		}
		ids = append(ids, id)
	}
	return ids
}

func (b *catalogBench) look(key string) idempotency.UploadStatus {
	b.t.Helper()
	st, err := b.ledger.Look(b.t.Context(), key)
	require.NoError(b.t, err)
	return st
}

// latch sends the upload of an item as a worker would, without an answer yet.
func (b *catalogBench) latch(it Item) string {
	b.t.Helper()
	b.sends++
	attempt := fmt.Sprintf("attempt-%d", b.sends)
	_, err := b.ledger.Latch(b.t.Context(), idempotency.LatchRequest{
		Key: it.Payload.Key, AttemptID: attempt, Source: it.Payload.Params.Source, AudioID: *it.Payload.Params.AudioID,
		SHA256: it.Payload.Input.SHA256, Timeout: time.Minute, At: b.now,
	})
	require.NoError(b.t, err)
	return attempt
}

// ends concludes the send and settles the task in the store, as a worker does.
func (b *catalogBench) ends(it Item, attempt string, effect idempotency.Effect, s store.Settlement) {
	b.t.Helper()
	_, err := b.ledger.Conclude(b.t.Context(), attempt, idempotency.Conclusion{Effect: effect, Outcome: s.Outcome, Reason: s.Reason, At: b.now})
	require.NoError(b.t, err)
	b.settle(it, s)
}

func (b *catalogBench) settle(it Item, s store.Settlement) {
	b.t.Helper()
	st, err := b.store.TaskStatus(b.t.Context(), it.Payload.Key)
	require.NoError(b.t, err)
	s.Key, s.Path, s.Generation, s.Finished, s.At = it.Payload.Key, tasks.Upload, st.Generation, true, b.now
	if s.Verdict == tasks.Done {
		s.Result = []byte("null")
	}
	require.NoError(b.t, b.store.Settle(b.t.Context(), s))
}

var (
	doneUpload     = store.Settlement{Verdict: tasks.Done, Outcome: tasks.Uploaded, Reason: "uploaded"}
	heldUpload     = store.Settlement{Verdict: tasks.Hold, Outcome: tasks.Ambiguous, Reason: "ambiguous: cut"}
	rejectedUpload = store.Settlement{Verdict: tasks.Archive, Outcome: tasks.InvalidAudio, Reason: "invalid_audio: too short", Final: true}
	slotLost       = store.Settlement{Verdict: tasks.Archive, Outcome: tasks.InvalidRequest, Reason: "invalid_request: slot", Final: true}
)

// send carries out a queued upload.
func (b *catalogBench) send(it Item, effect idempotency.Effect, s store.Settlement) {
	b.t.Helper()
	b.ends(it, b.latch(it), effect, s)
	b.drain(s.Verdict)
}

// drain lets asynq finish what is pending: the store knows the verdict already.
func (b *catalogBench) drain(v tasks.Verdict) {
	b.t.Helper()
	server := asynq.NewServerFromRedisClient(b.rdb, asynq.Config{
		Queues: map[string]int{"upload": 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond,
	})
	require.NoError(b.t, server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if v == tasks.Done {
			return nil
		}
		return errors.Join(errors.New(string(v)), asynq.SkipRetry)
	})))
	require.Eventually(b.t, func() bool { c := b.queued(); return c.Pending+c.Active == 0 }, 5*time.Second, 10*time.Millisecond)
	server.Shutdown()
}
