package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

// uploadRig is a rig with the upload ledger.
type uploadRig struct {
	*rig
	ledger *idempotency.Ledger
	sends  int
}

func setupUploads(t *testing.T) *uploadRig {
	t.Helper()
	b := &uploadRig{rig: setup(t)}
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
func assigning() Request {
	return Request{Path: tasks.Upload, Params: tasks.Params{Source: "main"}, NextID: true, By: "ann"}
}

// manifest plans a manifest whose files are in the folder of the rig.
func (b *uploadRig) manifest(text string) *Plan {
	b.t.Helper()
	m := manifest(b.t, text)
	for i := range m.rows {
		m.rows[i].path = strings.Replace(m.rows[i].path, "/catalog", b.dir, 1)
	}
	p, err := b.PlanManifest(b.t.Context(), Request{Path: tasks.Upload, Params: tasks.Params{Source: "main"}}, m, nil)
	require.NoError(b.t, err)
	return p
}

func (b *uploadRig) queued() redistest.Counts {
	b.t.Helper()
	c, err := redistest.CountTasks(b.t.Context(), b.rdb, "upload")
	require.NoError(b.t, err)
	return c
}

func (b *uploadRig) ids(p *Plan) (ids []int64) {
	for i := range p.Items {
		id, ok := p.Items[i].AudioID()
		if !ok {
			id = -1
		}
		ids = append(ids, id)
	}
	return ids
}

func (b *uploadRig) look(key string) idempotency.UploadStatus {
	b.t.Helper()
	st, err := b.ledger.Status(b.t.Context(), key)
	require.NoError(b.t, err)
	return st
}

// latch starts the send of an upload as a worker does, without an answer yet.
func (b *uploadRig) latch(it Item) string {
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

// conclude concludes the send and settles the task in the store, as a worker does.
func (b *uploadRig) conclude(it Item, attempt string, effect tasks.LatchEffect, s store.Settlement) {
	b.t.Helper()
	_, err := b.ledger.Conclude(b.t.Context(), attempt, idempotency.Conclusion{Effect: effect, Outcome: s.Outcome, Reason: s.Reason, At: b.now})
	require.NoError(b.t, err)
	b.settle(it, s)
}

func (b *uploadRig) settle(it Item, s store.Settlement) {
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

// send runs a queued upload to its end.
func (b *uploadRig) send(it Item, effect tasks.LatchEffect, s store.Settlement) {
	b.t.Helper()
	b.conclude(it, b.latch(it), effect, s)
	b.drain(s.Verdict)
}

// drain lets asynq end the pending tasks. The store has their verdict already.
func (b *uploadRig) drain(v tasks.Verdict) {
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
	proctest.Eventually(b.t, func() bool { c := b.queued(); return c.Pending+c.Active == 0 })
	server.Shutdown()
}
