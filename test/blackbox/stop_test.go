package blackbox

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
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
	"reprise/test/rig"
)

// Every process, the simulator included, is started as a user starts it.
func TestEveryFileHasOneResultAndOneUnitWhenAWorkerIsStopped(t *testing.T) {
	t.Parallel()
	const files, seed = 200, 20
	random := rand.New(rand.NewPCG(seed, 2))
	for which := range 2 {
		at := 20 + random.IntN(100) // requests after which the signal comes
		t.Run(fmt.Sprintf("worker %d after %d requests", which+1, at), func(t *testing.T) {
			t.Parallel()
			r := rig.Bare(t, redistest.AOF("always"))
			sim := proctest.Start(t, nil, "auddsim", "--tokens", r.Token, "--match-share", "0.5", "--latency", "150ms", "--latency-jitter", "0.9")
			const listening = "auddsim listening on "
			proctest.Eventually(t, func() bool { return strings.Contains(sim.Out.String(), listening) })
			url := strings.TrimSpace(strings.TrimPrefix(sim.Out.String(), listening))
			r.Sim = &auddsim.Server{URL: url, EnterpriseURL: url + "/enterprise/"}
			clips := clips(r, files)
			workers := []*proctest.Process{r.Worker("--recognize-slots", "4"), r.Worker("--recognize-slots", "4")}

			first := enqueueFolder(t, r, filepath.Dir(clips[0]))
			require.Equal(t, files, first.Statuses["queued"])
			proctest.Eventually(t, func() bool { return bill(t, url, "0").Requests >= int64(at) })
			workers[which].Stop(patience)
			workers[which].Line("stopped", time.Second)

			r.WaitIdle(recognize)
			b := bill(t, url, "1")
			require.EqualValues(t, files, b.Units)
			for _, c := range b.Contents {
				if c.Path == auddsim.PathRecognize {
					require.EqualValues(t, 1, c.Requests, "requests of %s", c.Name)
				}
			}
			r.OpenStore()
			for _, it := range first.Items {
				require.Equal(t, tasks.Done, requireOneResult(r, it.Key).Verdict)
			}
			require.Len(t, r.Calls(store.CallFilter{}), files)
			again := enqueueFolder(t, r, filepath.Dir(clips[0]))
			require.Equal(t, files, again.Statuses["already_done"], "enqueued again, every file is already done")
			require.EqualValues(t, files, bill(t, url, "0").Units)
		})
	}
}

// enqueued is the part of the report of enqueue that these tests read.
type enqueued struct {
	Statuses map[string]int `json:"statuses"`
	Items    []struct {
		Name string `json:"name"`
		Key  string `json:"key"`
	} `json:"items"`
}

func enqueueFolder(t *testing.T, r *rig.Rig, folder string) enqueued {
	t.Helper()
	p := proctest.Run(t, r.Env(), "enqueue", "recognize", folder, "--json")
	require.Zero(t, p.ExitCode())
	var report enqueued
	require.NoError(t, json.Unmarshal([]byte(p.Out.String()), &report))
	return report
}

// bill returns the bill of a simulator process.
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

func TestCallOfAKilledWorkerIsRecordedAndItsTaskIsDoneOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	hold := r.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize, Times: 1})
	w := r.Worker()
	p := enqueue(r, clip(r, "killed.wav"))[0]
	r.WaitHeld(1)
	w.Kill()
	r.Sim.Release(hold)
	requireAfterCrash(r, p)
}

func TestSecondSignalExitsAtOnceAndTheCallIsPossiblyBilled(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	hold := r.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize, Times: 1})
	w := r.Worker()
	p := enqueue(r, clip(r, "second-signal.wav"))[0]
	r.WaitHeld(1)
	w.Terminate()
	w.Line("stopping: no new tasks are taken, running calls finish", patience)
	proctest.Never(t, 2*time.Second, func() bool { return !w.Running() }, "the first signal waits for the call")
	w.Terminate()
	require.Equal(t, 2, w.Wait(patience), "exit code of a stop that does not wait for the call")
	r.Sim.Release(hold)
	requireAfterCrash(r, p)
}

// requireAfterCrash starts a new worker after one died during the only call of p,
// and requires that the lost call is recorded and made once more.
func requireAfterCrash(r *rig.Rig, p tasks.Payload) {
	t := r.T
	t.Helper()
	expireLease(r)
	r.Worker()
	s := r.WaitFinished(p)
	require.Equal(t, tasks.Match, s.Outcome)
	require.Equal(t, redistest.Counts{Completed: 1}, r.WaitIdle(recognize))
	calls := callsOf(r, p)
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
	require.Len(t, r.Requests(p), 2)
	requireOneResult(r, p.Key)
}
