package uploads

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

// tracks are more than four interrupted runs queue, each a chunk of 50 at most.
const tracks = 300

func TestAManifestInterruptedAtWillIsUploadedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	manifest, hashes := r.catalog(tracks)
	worker := r.worker()

	for n, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGKILL, syscall.SIGINT} {
		r.interrupted(sig, manifest)
		if n == 1 { // the worker finishes what it holds, and another one goes on
			worker.Stop(patience)
			worker = r.worker()
		}
	}
	require.Less(t, r.entered(), tracks, "an interruption came too late to be one")

	last := r.enqueue("--manifest", manifest)
	require.True(t, eventually(patience, func() bool { return r.entered() > tracks-40 }))
	worker.Terminate()
	require.Zero(t, last.Wait(patience), "exit code of enqueue")
	require.Zero(t, worker.Wait(patience), "exit code of the worker")
	r.worker()

	require.True(t, eventually(2*patience, func() bool { return len(r.sim.Catalog()) >= tracks }), "%d in the catalog", len(r.sim.Catalog()))
	waited := r.enqueue("--manifest", manifest, "--wait")
	require.Zero(t, waited.Wait(patience), "exit code of enqueue --wait")
	require.Contains(t, waited.Out.String(), "300 inputs finished: 300 uploaded")
	r.agree(hashes)

	known := r.enqueue("--manifest", manifest)
	require.Zero(t, known.Wait(patience))
	require.Contains(t, known.Out.String(), "0 queued, 300 known (free); 0 units at most")
	r.agree(hashes)
}

// interrupted runs enqueue and ends it by a signal in the middle of a chunk:
// Redis has taken some uploads of it, and answers nobody until the signal has
// arrived.
func (r *rig) interrupted(sig syscall.Signal, manifest string) {
	r.t.Helper()
	queued := 0
	queues := redistest.Containing("evalsha", "asynq:{upload}:pending")
	silent := r.proxy.BlackholeAt(func(request []byte) bool {
		if queues(request) {
			queued++
		}
		return queued > 5
	})
	p := r.enqueue("--manifest", manifest)
	select {
	case <-silent:
	case <-time.After(patience):
		require.Fail(r.t, "nothing more was queued")
	}
	p.Signal(sig)
	proctest.Pass(200 * time.Millisecond) // it arrives
	r.proxy.Restore()
	code := p.Wait(patience)
	if sig == syscall.SIGKILL {
		require.Equal(r.t, -1, code)
		return
	}
	require.Equal(r.t, 3, code, "exit code of an interrupted enqueue")
	require.Contains(r.t, p.Log.String(), "enqueue: stopped: ")
	require.Contains(r.t, p.Log.String(), "run the same command again to go on, nothing is queued twice")
}

// agree compares files, ledger and the simulator entry by entry.
func (r *rig) agree(hashes map[int64]string) {
	r.t.Helper()
	bill := r.sim.Bill()
	require.EqualValues(r.t, tracks, bill.Units, "units billed")
	sent := r.sim.Requests(auddsim.Filter{Path: "upload"})
	whole := map[int64]bool{} // by slot
	for _, q := range sent {
		if q.BodyBytes == 0 && !q.Complete {
			continue // a head whose latch could not be had in time: nothing was uploaded, nothing billed
		}
		require.True(r.t, q.Complete && q.AudioID != nil && !whole[*q.AudioID], "not whole, or not the first: %+v", q)
		whole[*q.AudioID] = true
	}
	require.Len(r.t, whole, tracks)
	entries, sends := r.ledger()
	require.Len(r.t, entries, tracks)
	catalog := r.sim.Catalog()
	require.Len(r.t, catalog, tracks)
	for _, slot := range catalog {
		e := entries[slot.AudioID]
		require.Len(r.t, slot.History, 1, "uploads into audio_id %d", slot.AudioID)
		require.Equal(r.t, hashes[slot.AudioID], slot.Hash, "content of audio_id %d at AudD", slot.AudioID)
		require.Equal(r.t, slot.Hash, e.SHA256, "content of audio_id %d in the ledger", slot.AudioID)
		require.Equal(r.t, idempotency.Settled, e.State, "audio_id %d", slot.AudioID)
		require.Equal(r.t, e.Key, e.Owner, "owner of audio_id %d", slot.AudioID)
		require.Equal(r.t, 1, sends[slot.AudioID], "latches of audio_id %d", slot.AudioID)
	}
}
