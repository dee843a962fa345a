package uploads

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/queue/asynqkey"
	"reprise/internal/redistest"
	"reprise/test/rig"
)

// tracks is more than four interrupted runs can queue: each queues a chunk of
// at most 50.
const tracks = 300

func TestInterruptedManifestIsUploadedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	manifest, hashes := catalog(r, tracks)
	worker := startWorker(r)

	for n, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGKILL, syscall.SIGINT} {
		interrupt(r, sig, manifest)
		if n == 1 { // the worker finishes its running tasks, and another one continues
			worker.Stop(patience)
			worker = startWorker(r)
		}
	}
	require.Less(t, entered(r), tracks, "every interruption came before the end")

	last := enqueue(r, "--manifest", manifest)
	proctest.Eventually(t, func() bool { return entered(r) > tracks-40 })
	worker.Terminate()
	require.Zero(t, last.Wait(patience), "exit code of enqueue")
	require.Zero(t, worker.Wait(patience), "exit code of the worker")
	startWorker(r)

	proctest.Eventually(t, func() bool { return len(r.Sim.Catalog()) >= tracks }, "%d in the catalog", func() any { return len(r.Sim.Catalog()) })
	waited := enqueue(r, "--manifest", manifest, "--wait")
	require.Zero(t, waited.Wait(patience), "exit code of enqueue --wait")
	require.Contains(t, waited.Out.String(), "300 inputs finished: 300 uploaded")
	requireAgreement(r, hashes)

	known := enqueue(r, "--manifest", manifest)
	require.Zero(t, known.Wait(patience))
	require.Contains(t, known.Out.String(), "0 queued, 300 already done (free); 0 units at most")
	requireAgreement(r, hashes)
}

// interrupt runs enqueue and sends it a signal in the middle of a chunk: Redis
// has taken some of its uploads and sends no reply until the signal is sent.
func interrupt(r *rig.Rig, sig syscall.Signal, manifest string) {
	r.T.Helper()
	queued := 0
	queues := redistest.Containing("evalsha", asynqkey.Of(queue, asynqkey.Pending))
	silent := r.Proxy.BlackholeAt(func(request []byte) bool {
		if queues(request) {
			queued++
		}
		return queued > 5
	})
	p := enqueue(r, "--manifest", manifest)
	proctest.Receive(r.T, silent, "nothing more was queued")
	p.Signal(sig)
	r.Proxy.Restore() // the signal arrives while enqueue connects again, or at the latest within the next chunks
	code := p.Wait(patience)
	if sig == syscall.SIGKILL {
		require.Equal(r.T, -1, code)
		return
	}
	require.Equal(r.T, 3, code, "exit code of an interrupted enqueue")
	require.Contains(r.T, p.Log.String(), "enqueue: stopped: ")
	require.Contains(r.T, p.Log.String(), "run the same command again to continue, nothing is queued twice")
}

// requireAgreement requires that the files, the ledger and the simulator agree
// about every upload.
func requireAgreement(r *rig.Rig, hashes map[int64]string) {
	r.T.Helper()
	bill := r.Sim.Bill()
	require.EqualValues(r.T, tracks, bill.Units, "units billed")
	sent := r.Sim.Requests(auddsim.Filter{Path: "upload"})
	whole := map[int64]bool{} // by audio_id
	for _, q := range sent {
		if q.BodyBytes == 0 && !q.Complete {
			continue // the latch was not granted in time: the head was sent, nothing was uploaded or billed
		}
		require.True(r.T, q.Complete && q.AudioID != nil && !whole[*q.AudioID], "incomplete, or a second upload: %+v", q)
		whole[*q.AudioID] = true
	}
	require.Len(r.T, whole, tracks)
	entries, latches := ledger(r)
	require.Len(r.T, entries, tracks)
	catalog := r.Sim.Catalog()
	require.Len(r.T, catalog, tracks)
	for _, slot := range catalog {
		e := entries[slot.AudioID]
		require.Len(r.T, slot.History, 1, "uploads into audio_id %d", slot.AudioID)
		require.Equal(r.T, hashes[slot.AudioID], slot.Hash, "content of audio_id %d at AudD", slot.AudioID)
		require.Equal(r.T, slot.Hash, e.SHA256, "content of audio_id %d in the ledger", slot.AudioID)
		require.Equal(r.T, idempotency.Settled, e.State, "audio_id %d", slot.AudioID)
		require.Equal(r.T, e.Key, e.Owner.Key, "owner of audio_id %d", slot.AudioID)
		require.Equal(r.T, 1, latches[slot.AudioID], "latches of audio_id %d", slot.AudioID)
	}
}
