package blackbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/queue/asynqkey"
	"reprise/internal/redistest"
)

// asynq alone would cause a second call, because its retry of an acknowledgement never works.
func TestRedisCutWhileCallsSucceedCausesNoSecondCall(t *testing.T) {
	t.Parallel()
	for _, cut := range []time.Duration{4 * time.Second, 12 * time.Second} {
		t.Run(cut.String(), func(t *testing.T) {
			t.Parallel()
			const held, files = 6, 10
			r := newRig(t, auddsim.Config{})
			hold := r.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
			w := r.Worker("--recognize-slots", fmt.Sprint(held))
			payloads := enqueue(r, clips(r, files)...)
			r.WaitHeld(held)
			r.Proxy.Cut()
			r.Sim.Release(hold)
			proctest.Pass(cut)
			r.Proxy.Restore()
			counts := r.WaitIdle(recognize)
			require.Equal(t, redistest.Counts{Completed: files}, counts)
			requireOnce(r, payloads)
			requireDeliveredOnce(t, w)
			w.Stop(patience)
		})
	}
}

func TestLostAcknowledgementCausesNoSecondCall(t *testing.T) {
	t.Parallel()
	// Only asynq's script that completes a task names both keys.
	done := redistest.Containing(asynqkey.Of(recognize, asynqkey.Lease), asynqkey.Of(recognize, asynqkey.Completed))
	for name, lose := range map[string]func(*redistest.Proxy, func([]byte) bool) <-chan struct{}{
		"request lost": (*redistest.Proxy).LoseRequest,
		"reply lost":   (*redistest.Proxy).LoseReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, auddsim.Config{})
			fired := lose(r.Proxy, done)
			w := r.Worker()
			payloads := enqueue(r, clip(r, "ack.wav"))
			proctest.Receive(t, fired, "no acknowledgement was lost")
			require.Equal(t, redistest.Counts{Completed: 1}, r.WaitIdle(recognize))
			requireOnce(r, payloads)
			requireDeliveredOnce(t, w)
		})
	}
}

// A worker that dies after settling and before the acknowledgement leaves a task
// that is delivered again and settled with the stored verdict.
func TestWorkerKilledBeforeItsAcknowledgementCausesNoSecondCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	hold := r.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
	w := r.Worker()
	payloads := enqueue(r, clip(r, "unacked.wav"))
	r.WaitHeld(1)
	r.Proxy.Cut()
	r.Sim.Release(hold)
	r.WaitFinished(payloads[0])
	w.Kill()
	r.Proxy.Restore()
	expireLease(r)
	r.Worker()
	require.Equal(t, redistest.Counts{Completed: 1}, r.WaitIdle(recognize))
	requireOnce(r, payloads)
}
