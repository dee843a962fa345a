package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/intake"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redisconn"
	"reprise/internal/redistest"
	"reprise/internal/testaudio"
	"reprise/store"
	"reprise/tasks"
	"reprise/test/rig"
)

// recognize is the queue of the path recognize without a group.
const recognize = "recognize"

// newRig starts a rig whose Redis keeps every acknowledged write.
func newRig(t *testing.T, cfg auddsim.Config, opts ...redistest.Option) *rig.Rig {
	t.Helper()
	return rig.New(t, cfg, append(opts, redistest.AOF("always"))...)
}

// clips writes n distinct WAV files into a folder of their own.
func clips(r *rig.Rig, n int) []string {
	r.T.Helper()
	require.NoError(r.T, os.MkdirAll(filepath.Join(r.Dir, "clips"), 0o700))
	files := make([]string, n)
	for i := range files {
		files[i] = clip(r, fmt.Sprintf("clips/clip-%03d.wav", i))
	}
	return files
}

// clip writes a WAV file with distinct content and returns its path.
func clip(r *rig.Rig, name string) string {
	r.T.Helper()
	file := filepath.Join(r.Dir, name)
	require.NoError(r.T, os.WriteFile(file, testaudio.WAV(time.Second, r.T.Name()+name), 0o600))
	return file
}

// enqueue queues inputs as `enqueue recognize` does and returns their payloads.
func enqueue(r *rig.Rig, inputs ...string) []tasks.Payload {
	r.T.Helper()
	rdb, err := redisconn.Queue(r.Server.URL(), 4)
	require.NoError(r.T, err)
	defer rdb.Close()
	in, err := intake.New(intake.Options{Redis: rdb, Store: r.Store})
	require.NoError(r.T, err)
	plan, err := in.Plan(r.T.Context(), intake.Request{Path: tasks.Recognize}, inputs, nil)
	require.NoError(r.T, err)
	require.NoError(r.T, in.Enqueue(r.T.Context(), plan, nil))
	out := make([]tasks.Payload, len(plan.Items))
	for i, it := range plan.Items {
		require.Equal(r.T, intake.Queued, it.Status, "%s: %s", it.Name, it.Reason)
		out[i] = it.Payload
	}
	return out
}

// expireLease lets the next worker take over the only running task.
func expireLease(r *rig.Rig) {
	r.T.Helper()
	require.Equal(r.T, 1, r.ExpireLeases(recognize), "tasks with a lease")
}

func callsOf(r *rig.Rig, p tasks.Payload) []store.Call {
	r.T.Helper()
	return r.Calls(store.CallFilter{Key: p.Key})
}

// requireOnce requires that every task is done, with one request, one call row
// and one result.
func requireOnce(r *rig.Rig, payloads []tasks.Payload) {
	r.T.Helper()
	for _, p := range payloads {
		s := r.WaitFinished(p)
		require.Equal(r.T, tasks.Done, s.Verdict, s.Reason)
		require.NotEmpty(r.T, s.Result)
		require.Len(r.T, r.Requests(p), 1, "requests of %s", p.Input.Path)
		require.Len(r.T, callsOf(r, p), 1, "call rows of %s", p.Input.Path)
		requireOneResult(r, p.Key)
	}
	require.EqualValues(r.T, len(payloads), r.Sim.Bill().Units, "units billed")
}

func requireOneResult(r *rig.Rig, key string) store.Result {
	r.T.Helper()
	history, err := r.Store.History(r.T.Context(), key)
	require.NoError(r.T, err)
	require.Len(r.T, history, 1, "results of %s", key)
	return history[0]
}

// requireDeliveredOnce requires that a worker acknowledged every task itself: no
// task was delivered again after its lease and settled from the store.
func requireDeliveredOnce(t *testing.T, w *proctest.Process) {
	t.Helper()
	require.Empty(t, w.Log.Lines("answered from the store: no call"))
}
