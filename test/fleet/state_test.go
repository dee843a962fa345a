package fleet

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/redistest"
	"reprise/tasks"
)

func (r *rig) counts(queue string) redistest.Counts {
	r.t.Helper()
	c, err := redistest.CountTasks(r.t.Context(), r.rdb, queue)
	require.NoError(r.t, err)
	return c
}

// source is the state of a source's recognize gates.
func (r *rig) source(name string) admission.SourceState {
	r.t.Helper()
	state, err := r.gates.State(r.t.Context())
	require.NoError(r.t, err)
	for _, s := range state.Sources {
		if s.Source == name && s.Path == tasks.Recognize {
			return s
		}
	}
	require.Fail(r.t, "admission does not know the source "+name)
	return admission.SourceState{}
}

// reasons are why a queue is paused.
func (r *rig) reasons(queue string) admission.PauseState {
	r.t.Helper()
	s, err := r.gates.Pauses().State(r.t.Context(), queue)
	require.NoError(r.t, err)
	return s
}

// paused reports asynq's own flag.
func (r *rig) paused(queue string) bool {
	r.t.Helper()
	n, err := r.rdb.Exists(r.t.Context(), "asynq:{"+queue+"}:paused").Result()
	require.NoError(r.t, err)
	return n == 1
}

// closed waits until a queue is paused for a reason.
func (r *rig) closed(queue, reason string, within time.Duration) {
	r.t.Helper()
	ok := eventually(within, func() bool { return r.paused(queue) && r.reasons(queue).Has(reason) })
	require.True(r.t, ok, "queue %s is not paused with %s: %+v", queue, reason, r.reasons(queue))
}

// permits is how many calls hold one.
func (r *rig) permits() int64 {
	r.t.Helper()
	state, err := r.gates.State(r.t.Context())
	require.NoError(r.t, err)
	return state.InFlight
}

// calm waits for a moment without a permit: every call admitted before has
// ended and was reported.
func (r *rig) calm() {
	r.t.Helper()
	require.True(r.t, eventually(20*time.Second, func() bool { return r.permits() == 0 }), "%d permits are out", r.permits())
}

// quiet waits until no task is under way and no call is.
func (r *rig) quiet(queue string) {
	r.t.Helper()
	require.True(r.t, eventually(20*time.Second, func() bool { return r.counts(queue).Active == 0 }), "%+v", r.counts(queue))
	r.calm()
}

// requests are the simulator's, running ones too, in order of arrival.
func (r *rig) requests() []auddsim.Request {
	return r.sim.Requests(auddsim.Filter{Path: auddsim.PathRecognize})
}

// since are the requests that arrived after a moment.
func (r *rig) since(at time.Time) []auddsim.Request {
	var out []auddsim.Request
	for _, q := range r.requests() {
		if q.At.After(at) {
			out = append(out, q)
		}
	}
	return out
}

// held waits until so many requests are held at the simulator, or more.
func (r *rig) held(n int) []auddsim.Held {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), busy*30*time.Second)
	defer cancel()
	held, err := r.sim.WaitHeld(ctx, n)
	require.NoError(r.t, err)
	return held
}
