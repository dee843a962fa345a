package fleet

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
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
	pass(time.Second)
	require.Equal(t, until, r.source(mainSource).ThrottledUntil, "neither a shorter one nor a person's resume ends it early")
	r.allDone(payloads, 40*time.Second)
	for _, q := range r.since(answered) {
		require.GreaterOrEqual(t, q.At.Sub(answered), rest, "never earlier than asked, by any worker")
	}
	for _, w := range r.workers {
		require.Len(t, w.log.lines(shutLine, "gate", string(admission.GateThrottle)), 1, "worker %s says it once", w.name)
	}
}

func TestLongWaitsGiveOneLinePerCause(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize, Times: 1})
	w := r.worker(func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 2}}
	})
	r.send("", "waiting", slots)
	require.True(t, eventually(40*time.Second, func() bool { return len(w.log.lines("waiting")) >= 2 }), w.log.tail())
	var gate, call line
	for _, l := range w.log.lines("waiting") {
		switch {
		case l.is("cause", "gate requests"):
			require.Nil(t, gate, "one line for all tasks that wait for a gate")
			gate = l
		case l.is("cause", "request in flight"):
			require.Nil(t, call)
			call = l
		}
	}
	require.NotNil(t, gate)
	require.NotNil(t, call)
	require.GreaterOrEqual(t, gate.number("tasks"), float64(slots-2))
	require.Nil(t, gate["task_ids"], "too many to name")
	require.EqualValues(t, 1, call.number("tasks"))
	require.Contains(t, call["task_ids"], "recognize_")
	r.sim.Release(hold)
}
