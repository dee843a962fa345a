package blackbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/tasks"
)

// The stock behaviour of asynq is a second bill: its own retry of an
// acknowledgement never works.
func TestRedisCutExactlyWhileCallsSucceedCostsNoSecondCall(t *testing.T) {
	t.Parallel()
	for _, cut := range []time.Duration{4 * time.Second, 12 * time.Second} {
		t.Run(cut.String(), func(t *testing.T) {
			t.Parallel()
			const held, files = 6, 10
			r := newRig(t, auddsim.Config{})
			hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
			w := r.worker("--recognize-slots", fmt.Sprint(held))
			payloads := r.enqueue(r.clips(files)...)
			r.held(held)
			r.proxy.Cut()
			r.sim.Release(hold)
			proctest.Pass(cut)
			r.proxy.Restore()
			counts := r.acked(patience)
			require.Equal(t, redistest.Counts{Completed: files}, counts)
			r.once(payloads)
			deliveredOnce(t, w)
			w.Stop(patience)
		})
	}
}

func TestLostAcknowledgementCostsNoSecondCall(t *testing.T) {
	t.Parallel()
	// asynq's script that completes a task is the one that names the completed set.
	done := redistest.Containing("asynq:{recognize}:lease", "asynq:{recognize}:completed")
	for name, lose := range map[string]func(*redistest.Proxy, func([]byte) bool) <-chan struct{}{
		"its request": (*redistest.Proxy).LoseRequest,
		"its answer":  (*redistest.Proxy).LoseReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, auddsim.Config{})
			fired := lose(r.proxy, done)
			w := r.worker()
			payloads := r.enqueue(r.named("ack.wav"))
			select {
			case <-fired:
			case <-time.After(patience):
				require.Fail(t, "no acknowledgement was lost")
			}
			require.Equal(t, redistest.Counts{Completed: 1}, r.acked(patience))
			r.once(payloads)
			deliveredOnce(t, w)
		})
	}
}

// A worker that dies between its settlement and the acknowledgement leaves a
// task that runs again and finds its verdict.
func TestWorkerKilledBeforeItsAcknowledgementRepeatsTheVerdict(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
	w := r.worker()
	payloads := r.enqueue(r.named("unacked.wav"))
	r.held(1)
	r.proxy.Cut()
	r.sim.Release(hold)
	r.standing(payloads[0], patience)
	w.Kill()
	r.proxy.Restore()
	r.age(tasks.Recognize, 1)
	r.worker()
	require.Equal(t, redistest.Counts{Completed: 1}, r.acked(patience))
	r.once(payloads)
}
