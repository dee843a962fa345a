package blackbox

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"reprise/internal/auddsim"
	"reprise/internal/redistest"
)

// storeOutbox is where settlements wait for the store.
const storeOutbox = "reprise:{adm}:outbox"

// Another program holds the database for 20 s or more: longer than every timeout of
// the store, so that settlements go through the outbox.
func TestStoreUnwritableWhileCallsCompleteLosesNothing(t *testing.T) {
	t.Parallel()
	const files, outage = 12, 20 * time.Second
	for name, lock := range map[string]func(*rig) (unlock func()){
		"begin immediate": func(r *rig) func() { return r.begin("IMMEDIATE") },
		"begin exclusive": func(r *rig) func() { return r.begin("EXCLUSIVE") },
		"no reads either": (*rig).lockAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, auddsim.Config{})
			hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
			w := r.worker("--recognize-slots", "4")
			payloads := r.enqueue(r.clips(files)...)
			r.held(4)
			unlock := lock(r)
			r.sim.Release(hold)
			over := time.NewTimer(outage)
			defer over.Stop()
			kept := eventually(patience, func() bool {
				return r.rdb.HLen(t.Context(), storeOutbox).Val() >= 4
			})
			<-over.C
			unlock()
			require.True(t, kept, "the outbox takes what the store does not")
			counts := r.acked(patience)
			require.Equal(t, redistest.Counts{Completed: files}, counts)
			require.True(t, eventually(patience, func() bool {
				return r.rdb.HLen(t.Context(), storeOutbox).Val() == 0
			}), "the outbox is drained")
			r.once(payloads)
			w.Stop(patience)
		})
	}
}

// begin holds a write transaction until the result is called.
func (r *rig) begin(kind string) (end func()) {
	r.t.Helper()
	db, err := sql.Open("sqlite", r.storeFile()+"?_pragma=busy_timeout(60000)")
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(r.t.Context())
	require.NoError(r.t, err)
	_, err = conn.ExecContext(r.t.Context(), "BEGIN "+kind)
	require.NoError(r.t, err)
	return func() {
		_, _ = conn.ExecContext(context.Background(), "ROLLBACK") // a connection that closes rolls back too
		_ = conn.Close()
	}
}

// lockAll takes the lock bytes of the write-ahead log, those of readers too:
// nobody can begin to read or write. The locks belong to the open file, so
// that they hold against connections of this process as well.
func (r *rig) lockAll() (unlock func()) {
	r.t.Helper()
	f, err := os.OpenFile(r.storeFile()+"-shm", os.O_RDWR, 0)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = f.Close() })
	const firstByte, bytes = 120, 8 // wal.c: write, checkpoint, recover and five read marks
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: firstByte, Len: bytes}
	require.True(r.t, eventually(patience, func() bool {
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) == nil
	}), "lock the write-ahead log")
	return func() { _ = f.Close() }
}
