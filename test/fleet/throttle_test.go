package fleet

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/tasks"
	"reprise/worker"
)

func retryAfter(url, seconds string) auddsim.Rule {
	return auddsim.Rule{
		Path: auddsim.PathRecognize, URL: url, Times: 1, Status: http.StatusTooManyRequests, AnswerHeader: map[string]string{"Retry-After": seconds},
	}
}

func TestRetryAfterOfOneAnswerShutsTheSourceForAllWorkersUntilThen(t *testing.T) {
	t.Parallel()
	const rest = 8 * time.Second
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{retryAfter("*long*", "8"), retryAfter("*short*", "1")}})
	short := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*short*", Times: 1})
	long := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*long*", Times: 1})
	payloads := append(r.send("", "short", 1), r.send("", "long", 1)...)
	r.fleet(3, nil)
	r.held(2)
	answered := time.Now()
	r.sim.Release(long)
	require.True(t, eventually(5*time.Second, func() bool { return r.source(mainSource).ThrottledUntil.After(answered) }))
	until := r.source(mainSource).ThrottledUntil
	payloads = append(payloads, r.send("", "others", 60)...)
	r.sim.Release(short)
	require.True(t, eventually(5*time.Second, func() bool { return r.sim.Sums().Throttled == 2 }))
	_, err := r.gates(nil).Resume(t.Context(), "", "", "test")
	require.NoError(t, err)
	proctest.Pass(time.Second)
	require.Equal(t, until, r.source(mainSource).ThrottledUntil, "neither a shorter one nor a person's resume ends it early")
	r.allDone(payloads, 40*time.Second)
	for _, q := range r.since(answered) {
		require.GreaterOrEqual(t, q.At.Sub(answered), rest, "never earlier than asked, by any worker")
	}
	for _, w := range r.workers {
		require.Len(t, w.log.Lines(shutLine, "gate", string(admission.GateThrottle)), 1, "worker %s says it once", w.name)
	}
}

func TestLongWaitsGiveOneLinePerCause(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
	w := r.worker(func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 2}}
	})
	defer r.sim.Release("") // the worker waits for it when it stops
	r.send("", "waiting", slots)
	var gate, call []proctest.Line
	require.True(t, eventually(80*time.Second, func() bool {
		gate, call = w.log.Lines("waiting", "cause", "gate requests"), w.log.Lines("waiting", "cause", "request in flight")
		return len(gate) > 0 && len(call) > 0
	}), w.log.Tail())
	require.Len(t, w.log.Lines("waiting"), len(gate)+len(call))
	for i := 1; i < len(gate); i++ {
		require.GreaterOrEqual(t, gate[i].At().Sub(gate[i-1].At()), 10*time.Second, "one line for all tasks that wait for a gate")
	}
	require.GreaterOrEqual(t, gate[0].Number("tasks"), float64(slots-3))
	require.Nil(t, gate[0]["task_ids"], "too many to name")
	require.LessOrEqual(t, call[0].Number("tasks"), float64(3))
	require.Contains(t, call[0]["task_ids"], "recognize_")
}
