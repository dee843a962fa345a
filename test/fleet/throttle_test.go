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

func TestRetryAfterInOneResponseBlocksTheSourceForAllWorkers(t *testing.T) {
	t.Parallel()
	const rest = 15 * time.Second // longer than the steps of this test before its end
	f := newFleet(t, auddsim.Config{Rules: []auddsim.Rule{retryAfter("*long*", "15"), retryAfter("*short*", "1")}})
	short := f.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*short*", Times: 1})
	long := f.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*long*", Times: 1})
	payloads := append(f.send("", "short", 1), f.send("", "long", 1)...)
	f.start(3, nil)
	f.WaitHeld(2)
	answered := time.Now()
	f.Sim.Release(long)
	proctest.Eventually(t, func() bool { return f.source(mainSource).ThrottledUntil.After(answered) })
	until := f.source(mainSource).ThrottledUntil
	payloads = append(payloads, f.send("", "others", 60)...)
	for _, w := range f.workers {
		proctest.Eventually(t, func() bool { return len(w.log.Lines(shutLine)) > 0 }, "worker %s logs the throttle", w.name)
	}
	f.Sim.Release(short)
	proctest.Eventually(t, func() bool { return f.Sim.Sums().HTTP429 == 2 })
	f.waitNoPermit() // the call was reported
	_, err := f.gates.Resume(t.Context(), "", "", "test")
	require.NoError(t, err)
	require.Equal(t, until, f.source(mainSource).ThrottledUntil, "neither a shorter throttle nor a resume ends it early")
	f.waitDone(payloads)
	for _, q := range f.since(answered) {
		require.GreaterOrEqual(t, q.At.Sub(answered), rest, "time from the response to the next call")
	}
	for _, w := range f.workers {
		require.Len(t, w.log.Lines(shutLine, "gate", string(admission.GateThrottle)), 1, "lines of worker %s", w.name)
	}
}

func TestLongWaitsLogOneLinePerCause(t *testing.T) {
	t.Parallel()
	f := newFleet(t, auddsim.Config{})
	f.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
	started := time.Now()
	w := f.worker(func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 2}}
	})
	defer f.Sim.Release("") // the worker waits for its calls when it stops
	f.send("", "waiting", slots)
	is := func(cause string) func(proctest.Line) bool {
		return func(l proctest.Line) bool { return l.Is("cause", cause) }
	}
	gate, call := is("gate requests"), is("request in flight")
	var lines []proctest.Line
	proctest.Eventually(t, func() bool {
		lines = w.log.Lines("waiting")
		return slices.ContainsFunc(lines, gate) && slices.ContainsFunc(lines, call)
	}, "%s", func() any { return w.log.Tail() })
	checks := int(time.Since(started) / (15 * time.Second))
	require.LessOrEqual(t, len(lines), 2*checks, "one line for each cause at each check")
	for _, l := range lines {
		require.True(t, gate(l) || call(l), "%v", l)
	}
	first := lines[slices.IndexFunc(lines, gate)]
	require.GreaterOrEqual(t, first.Number("tasks"), float64(slots-3))
	require.Nil(t, first["task_ids"], "too many tasks to list")
	first = lines[slices.IndexFunc(lines, call)]
	require.LessOrEqual(t, first.Number("tasks"), float64(3))
	require.Contains(t, first["task_ids"], "recognize_")
}
