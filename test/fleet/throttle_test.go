package fleet

import (
	"net/http"
	"slices"
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
	const rest = 15 * time.Second // all this test does before must fit into it
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{retryAfter("*long*", "15"), retryAfter("*short*", "1")}})
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
	for _, w := range r.workers {
		require.True(t, eventually(5*time.Second, func() bool { return len(w.log.Lines(shutLine)) > 0 }), "worker %s says it", w.name)
	}
	r.sim.Release(short)
	require.True(t, eventually(5*time.Second, func() bool { return r.sim.Sums().HTTP429 == 2 }))
	r.calm() // it was reported
	_, err := r.gates.Resume(t.Context(), "", "", "test")
	require.NoError(t, err)
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
	started := time.Now()
	w := r.worker(func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 2}}
	})
	defer r.sim.Release("") // the worker waits for it when it stops
	r.send("", "waiting", slots)
	is := func(cause string) func(proctest.Line) bool {
		return func(l proctest.Line) bool { return l.Is("cause", cause) }
	}
	gate, call := is("gate requests"), is("request in flight")
	var lines []proctest.Line
	require.True(t, eventually(80*time.Second, func() bool {
		lines = w.log.Lines("waiting")
		return slices.ContainsFunc(lines, gate) && slices.ContainsFunc(lines, call)
	}), w.log.Tail())
	looks := int(time.Since(started) / (15 * time.Second))
	require.LessOrEqual(t, len(lines), 2*looks, "at each look one line for all tasks that wait for the same")
	for _, l := range lines {
		require.True(t, gate(l) || call(l), "%v", l)
	}
	first := lines[slices.IndexFunc(lines, gate)]
	require.GreaterOrEqual(t, first.Number("tasks"), float64(slots-3))
	require.Nil(t, first["task_ids"], "too many to name")
	first = lines[slices.IndexFunc(lines, call)]
	require.LessOrEqual(t, first.Number("tasks"), float64(3))
	require.Contains(t, first["task_ids"], "recognize_")
}
