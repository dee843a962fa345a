package worker_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/redistest"
	"reprise/tasks"
)

// gates is admission as another process (inspect) sees it.
func (r *rig) gates() *admission.Gates {
	r.t.Helper()
	g, err := admission.New(r.rdb, admission.DefaultConfig())
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, g.Close()) })
	return g
}

func (r *rig) paused(queue string) bool {
	info, err := r.inspect.GetQueueInfo(queue)
	return err == nil && info.Paused
}

func TestQueueOfAShutSourceIsPausedAndKeepsItsBacklogInOrder(t *testing.T) {
	t.Parallel()
	const backlog = 500
	r := newRig(t, auddsim.Config{MatchShare: 1, Rules: []auddsim.Rule{{
		Path: "recognize", Status: http.StatusTooManyRequests, Times: 1, AnswerHeader: map[string]string{"Retry-After": "600"},
	}}}, nil)
	var payloads []tasks.Payload
	for i := range backlog {
		p := r.clip(fmt.Sprintf("clip-%03d.wav", i))
		payloads = append(payloads, p)
		r.enqueue(p)
	}
	stop := r.run()
	require.True(t, eventually(20*time.Second, func() bool { return r.paused("recognize") }), r.log.String())
	state, err := r.gates().Pauses().State(t.Context(), "recognize")
	require.NoError(t, err)
	require.True(t, state.Has("auto:throttle"), "%+v", state)
	counts, err := redistest.CountTasks(t.Context(), r.rdb, "recognize")
	require.NoError(t, err)
	require.LessOrEqual(t, counts.Retry+counts.Scheduled, 2*8+1, "at most what was in slots, and taken while it closed")
	require.Greater(t, counts.Pending, backlog-40)
	pending, err := r.inspect.ListPendingTasks("recognize", asynq.PageSize(0))
	require.NoError(t, err)
	at := map[string]int{}
	for i, p := range payloads {
		at[p.Key] = i
	}
	for i := 1; i < backlog-40; i++ { // behind them may be some that came back
		require.Less(t, at[pending[i-1].ID], at[pending[i].ID], "the pending list keeps its order")
	}

	// A person's pause on top stays when the automatic one goes.
	_, _, err = r.gates().Pauses().Add(t.Context(), "recognize", admission.PauseReason{Name: admission.ReasonManual, By: "test"})
	require.NoError(t, err)
	require.NoError(t, r.rdb.HSet(t.Context(), "reprise:{adm}:s:main:recognize", "thr", 0).Err(), "the throttle ends")
	require.True(t, eventually(10*time.Second, func() bool {
		s, err := r.gates().Pauses().State(t.Context(), "recognize")
		return err == nil && !s.Has("auto:throttle")
	}))
	require.True(t, r.paused("recognize"))

	_, _, err = r.gates().Pauses().Remove(t.Context(), "recognize", admission.ReasonManual)
	require.NoError(t, err)
	opened := time.Now()
	before := r.sim.Bill().Requests
	require.True(t, eventually(5*time.Second, func() bool { return r.sim.Bill().Requests > before+3 }))
	require.Less(t, time.Since(opened), 3*time.Second, "opening starts within 2 s")
	stop()
}

func TestWhatAnAccountReasonArchivedIsReplayedWhenItsSourceOpens(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1, Rules: []auddsim.Rule{{ID: "sub", Path: "recognize", Code: 904}}}, nil)
	p := r.clip("plan.wav")
	waiting := r.clip("waiting.wav")
	r.enqueue(p)
	r.run()
	s := r.standing(p, 10*time.Second)
	require.Equal(t, tasks.Subscription, s.Outcome)
	require.Equal(t, tasks.Archive, s.Verdict)
	require.False(t, s.Final)
	r.enqueue(waiting)
	require.True(t, eventually(15*time.Second, func() bool { return r.paused("recognize") }), r.log.String())

	r.sim.RemoveRules("sub")
	_, err := r.gates().Resume(t.Context(), "main", tasks.Recognize, "test")
	require.NoError(t, err)
	ok := eventually(30*time.Second, func() bool {
		a, errA := r.store.Standing(t.Context(), p.Key)
		b, errB := r.store.Standing(t.Context(), waiting.Key)
		return errA == nil && errB == nil && a.Outcome == tasks.Match && b.Outcome == tasks.Match
	})
	require.True(t, ok, "%s\n%s", r.queueState(p), r.log.String())
	require.EqualValues(t, 2, r.requests(p))
}

func TestAPauseFromTheWebUIIsTakenAsAPersons(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, nil)
	first := r.clip("first.wav")
	r.enqueue(first)
	r.run()
	r.standing(first, 10*time.Second)
	require.NoError(t, r.inspect.PauseQueue("recognize"))
	require.True(t, eventually(10*time.Second, func() bool {
		s, err := r.gates().Pauses().State(t.Context(), "recognize")
		return err == nil && s.Has(admission.ReasonManual)
	}))
}
