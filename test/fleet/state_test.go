package fleet

import (
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/queue/asynqkey"
	"reprise/tasks"
)

// show and units are arguments for proctest.Eventually.
func (f *fleet) show() any  { return f.Counts(recognize) }
func (f *fleet) units() any { return f.Sim.Sums().Units }

// source returns the state of a source for the path recognize.
func (f *fleet) source(name string) admission.SourceState {
	f.T.Helper()
	state, err := f.gates.State(f.T.Context())
	require.NoError(f.T, err)
	for _, s := range state.Sources {
		if s.Source == name && s.Path == tasks.Recognize {
			return s
		}
	}
	require.Fail(f.T, "unknown source "+name)
	return admission.SourceState{}
}

// reasons returns why a queue is paused.
func (f *fleet) reasons(queue string) admission.PauseState {
	f.T.Helper()
	s, err := admission.NewPauses(f.Redis, admission.DefaultPrefix).State(f.T.Context(), queue)
	require.NoError(f.T, err)
	return s
}

// paused reports whether asynq's flag for a paused queue is set.
func (f *fleet) paused(queue string) bool {
	f.T.Helper()
	n, err := f.Redis.Exists(f.T.Context(), asynqkey.Of(queue, asynqkey.Paused)).Result()
	require.NoError(f.T, err)
	return n == 1
}

// waitPaused waits until a queue is paused for a reason.
func (f *fleet) waitPaused(queue, reason string) {
	f.T.Helper()
	proctest.Eventually(f.T, func() bool { return f.paused(queue) && f.reasons(queue).Has(reason) },
		"queue %s is not paused with %s: %+v", queue, reason, func() any { return f.reasons(queue) })
}

// permits returns the number of permits in use.
func (f *fleet) permits() int64 {
	f.T.Helper()
	state, err := f.gates.State(f.T.Context())
	require.NoError(f.T, err)
	return state.InFlight
}

// waitNoPermit waits until no permit is in use: every call admitted before has
// ended and was reported.
func (f *fleet) waitNoPermit() {
	f.T.Helper()
	proctest.Eventually(f.T, func() bool { return f.permits() == 0 }, "%d permits in use", func() any { return f.permits() })
}

// waitQuiet waits until no task and no call runs.
func (f *fleet) waitQuiet(queue string) {
	f.T.Helper()
	proctest.Eventually(f.T, func() bool { return f.Counts(queue).Active == 0 }, "%+v", func() any { return f.Counts(queue) })
	f.waitNoPermit()
}

// requests returns the simulator's requests in order of arrival, running ones included.
func (f *fleet) requests() []auddsim.Request {
	return f.Sim.Requests(auddsim.Filter{Path: auddsim.PathRecognize})
}

// since returns the requests that arrived after a time.
func (f *fleet) since(at time.Time) []auddsim.Request {
	var out []auddsim.Request
	for _, q := range f.requests() {
		if q.At.After(at) {
			out = append(out, q)
		}
	}
	return out
}
