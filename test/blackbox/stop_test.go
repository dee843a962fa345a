package blackbox

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

// Everything as a person would start it by hand, the simulator too.
func TestEveryFileHasOneResultAndOneUnitWhicheverWorkerIsStopped(t *testing.T) {
	t.Parallel()
	const files, seed = 200, 20
	random := rand.New(rand.NewPCG(seed, 2))
	for which := range 2 {
		at := 20 + random.IntN(100) // requests after which the signal comes
		t.Run(fmt.Sprintf("worker %d after %d requests", which+1, at), func(t *testing.T) {
			t.Parallel()
			r := &rig{t: t, server: redistest.NewServer(t, redistest.AOF("always")), dir: t.TempDir(), token: token}
			require.NoError(t, os.Mkdir(filepath.Dir(r.storeFile()), 0o700)) // a worker makes a store, but no folder for it
			r.proxy, r.rdb = redistest.NewProxy(t, r.server.Addr()), r.server.Client()
			sim := proctest.Start(t, nil, "auddsim", "--tokens", token, "--match-share", "0.5", "--latency", "150ms", "--latency-jitter", "0.9")
			const listening = "auddsim listening on "
			require.True(t, eventually(patience, func() bool { return strings.Contains(sim.Out.String(), listening) }))
			url := strings.TrimSpace(strings.TrimPrefix(sim.Out.String(), listening))
			r.sim = &auddsim.Server{URL: url, EnterpriseURL: url + "/enterprise/"}
			clips := r.clips(files)
			workers := []*proctest.Process{r.worker("--recognize-slots", "4"), r.worker("--recognize-slots", "4")}

			first := enqueueFolder(t, r, filepath.Dir(clips[0]))
			require.Equal(t, files, first.Statuses["queued"])
			require.True(t, eventually(patience, func() bool { return bill(t, url, "0").Requests >= int64(at) }))
			workers[which].Stop(patience)
			workers[which].Line("stopped", time.Second)

			r.acked(patience)
			b := bill(t, url, "1")
			require.EqualValues(t, files, b.Units)
			for _, c := range b.Contents {
				if c.Path == auddsim.PathRecognize {
					require.EqualValues(t, 1, c.Requests, "requests of %s", c.Name)
				}
			}
			r.store = r.openStore()
			for _, it := range first.Items {
				history, err := r.store.History(t.Context(), it.Key)
				require.NoError(t, err)
				require.Len(t, history, 1, it.Name)
				require.Equal(t, tasks.Done, history[0].Verdict)
			}
			calls, err := r.store.Calls(t.Context(), store.CallFilter{})
			require.NoError(t, err)
			require.Len(t, calls, files)
			again := enqueueFolder(t, r, filepath.Dir(clips[0]))
			require.Equal(t, files, again.Statuses["already_done"], "enqueuing again is answered from the store")
			require.EqualValues(t, files, bill(t, url, "0").Units)
		})
	}
}

// enqueued is the part of enqueue's report that these tests read.
type enqueued struct {
	Statuses map[string]int `json:"statuses"`
	Items    []struct {
		Name string `json:"name"`
		Key  string `json:"key"`
	} `json:"items"`
}

func enqueueFolder(t *testing.T, r *rig, folder string) enqueued {
	t.Helper()
	p := proctest.Run(t, r.env(), "enqueue", "recognize", folder, "--json")
	require.Zero(t, p.ExitCode())
	var report enqueued
	require.NoError(t, json.Unmarshal([]byte(p.Out.String()), &report))
	return report
}

// bill asks a simulator process what it charged.
func bill(t *testing.T, url, lines string) auddsim.Bill {
	t.Helper()
	resp, err := http.Get(url + "/_sim/bill?lines=" + lines)
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var b auddsim.Bill
	require.NoError(t, json.Unmarshal(raw, &b), string(raw))
	return b
}

func TestWorkerKilledDuringACallIsMournedAndTheTaskDoneOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize, Times: 1})
	w := r.worker()
	p := r.enqueue(r.named("killed.wav"))[0]
	r.held(1)
	w.Kill()
	r.sim.Release(hold)
	r.afterCrash(p)
}

func TestSecondSignalExitsAtOnceAndTheCallIsCountedAsPossiblyBilled(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize, Times: 1})
	w := r.worker()
	p := r.enqueue(r.named("second-signal.wav"))[0]
	r.held(1)
	w.Terminate()
	w.Line("stopping: running calls finish, nothing new is taken", patience)
	require.False(t, eventually(2*time.Second, func() bool { return !w.Running() }), "the first signal waits for the call")
	w.Terminate()
	require.Equal(t, 2, w.Wait(patience), "a stop in order, once the call has timed out, is no 2")
	r.sim.Release(hold)
	r.afterCrash(p)
}

// afterCrash starts a fresh worker after one died during the only call of p,
// and checks that the call is accounted for and made once more.
func (r *rig) afterCrash(p tasks.Payload) {
	t := r.t
	t.Helper()
	r.age(tasks.Recognize, 1)
	r.worker()
	s := r.standing(p, patience)
	require.Equal(t, tasks.Match, s.Outcome)
	require.Equal(t, redistest.Counts{Completed: 1}, r.acked(patience))
	calls := r.calls(p)
	require.Len(t, calls, 2)
	lost, good := calls[0], calls[1]
	if lost.Outcome != tasks.Crash {
		lost, good = good, lost
	}
	require.Equal(t, tasks.Crash, lost.Outcome)
	require.True(t, lost.PossiblyBilled)
	require.EqualValues(t, 1, lost.Units)
	require.Equal(t, tasks.Match, good.Outcome)
	require.False(t, good.PossiblyBilled)
	require.Len(t, r.requests(p), 2)
	history, err := r.store.History(t.Context(), p.Key)
	require.NoError(t, err)
	require.Len(t, history, 1)
}
