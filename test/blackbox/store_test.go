package blackbox

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/test/rig"
)

// storeOutbox is the Redis hash of the settlements that wait for the store.
const storeOutbox = "reprise:{adm}:outbox"

// Another program locks the database for 20 s or more, longer than every timeout
// of the store, so that settlements go through the outbox.
func TestNoResultIsLostWhileTheStoreIsLocked(t *testing.T) {
	t.Parallel()
	const files, outage = 12, 20 * time.Second
	for name, lock := range map[string]func(*rig.Rig) (unlock func()){
		"begin immediate":         func(r *rig.Rig) func() { return r.LockStore("IMMEDIATE") },
		"begin exclusive":         func(r *rig.Rig) func() { return r.LockStore("EXCLUSIVE") },
		"reads and writes locked": lockAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, auddsim.Config{})
			hold := r.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
			w := r.Worker("--recognize-slots", "4")
			payloads := enqueue(r, clips(r, files)...)
			r.WaitHeld(4)
			unlock := lock(r)
			r.Sim.Release(hold)
			began := time.Now()
			proctest.Eventually(t, func() bool { return r.Redis.HLen(t.Context(), storeOutbox).Val() >= 4 }, "the outbox holds the settlements")
			proctest.Pass(outage - time.Since(began))
			unlock()
			counts := r.WaitIdle(recognize)
			require.Equal(t, redistest.Counts{Completed: files}, counts)
			proctest.Eventually(t, func() bool { return r.Redis.HLen(t.Context(), storeOutbox).Val() == 0 }, "the outbox is drained")
			requireOnce(r, payloads)
			w.Stop(patience)
		})
	}
}

// lockAll takes the lock bytes of the write-ahead log, those of readers too: no
// connection can begin to read or write. The locks belong to the open file, so
// they also hold against connections of this process.
func lockAll(r *rig.Rig) (unlock func()) {
	r.T.Helper()
	f, err := os.OpenFile(r.StoreFile()+"-shm", os.O_RDWR, 0)
	require.NoError(r.T, err)
	r.T.Cleanup(func() { _ = f.Close() })
	const firstByte, bytes = 120, 8 // wal.c: write, checkpoint, recover and five read marks
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: firstByte, Len: bytes}
	proctest.Eventually(r.T, func() bool {
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) == nil
	}, "lock the write-ahead log")
	return func() { _ = f.Close() }
}
