package uploads

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/internal/testaudio"
	"reprise/test/rig"
)

const queue = "upload"

func newRig(t *testing.T) *rig.Rig {
	t.Helper()
	return rig.New(t, auddsim.Config{}, redistest.AOF("always"))
}

// startWorker starts a worker that is connected to Redis directly.
func startWorker(r *rig.Rig) *proctest.Process {
	r.T.Helper()
	return r.WorkerWith([]string{"REPRISE_REDIS_URL=" + r.Server.URL()})
}

// enqueue starts `enqueue upload`, connected to Redis through the proxy.
func enqueue(r *rig.Rig, args ...string) *proctest.Process {
	r.T.Helper()
	return proctest.Start(r.T, append(r.Env(), "USER=ann"), "enqueue", append([]string{"upload", "--quiet"}, args...)...)
}

// entered returns how many uploads were ever queued: asynq keeps finished ones for a day.
func entered(r *rig.Rig) int { return r.Counts(queue).Total() }

// catalog writes n distinct tracks and a manifest with ids from 1,000. hashes has
// the SHA-256 of each track by its id.
func catalog(r *rig.Rig, n int) (manifest string, hashes map[int64]string) {
	r.T.Helper()
	var rows bytes.Buffer
	rows.WriteString("audio_id,file,external_id\n")
	hashes = map[int64]string{}
	require.NoError(r.T, os.Mkdir(filepath.Join(r.Dir, "tracks"), 0o700))
	for i := range n {
		content := testaudio.WAV(100*time.Millisecond, strconv.Itoa(i))
		id, name := int64(1000+i), fmt.Sprintf("tracks/%03d.wav", i)
		require.NoError(r.T, os.WriteFile(filepath.Join(r.Dir, name), content, 0o600))
		fmt.Fprintf(&rows, "%d,%s,track-%d\n", id, name, i)
		sum := sha256.Sum256(content)
		hashes[id] = hex.EncodeToString(sum[:])
	}
	manifest = filepath.Join(r.Dir, "catalog.csv")
	require.NoError(r.T, os.WriteFile(manifest, rows.Bytes(), 0o600))
	return manifest, hashes
}

// ledger returns the entries of the ledger and the number of latches, by audio_id.
func ledger(r *rig.Rig) (entries map[int64]idempotency.Entry, latches map[int64]int) {
	r.T.Helper()
	l, err := idempotency.New(r.T.Context(), r.Store.DB(), idempotency.DefaultConfig())
	require.NoError(r.T, err)
	found, err := l.List(r.T.Context(), idempotency.Filter{Limit: 10_000})
	require.NoError(r.T, err)
	entries, latches = map[int64]idempotency.Entry{}, map[int64]int{}
	for _, e := range found {
		require.NotContains(r.T, entries, e.AudioID)
		entries[e.AudioID] = e
		d, err := l.Show(r.T.Context(), e.Key)
		require.NoError(r.T, err)
		for _, s := range d.Sends {
			if s.State != idempotency.Released { // a released latch sent nothing
				latches[e.AudioID]++
			}
		}
	}
	return entries, latches
}
