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
	"reprise/worker"
)

// gates is admission as another process uses it.
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

func TestQueueOfABlockedSourceIsPausedAndKeepsItsBacklogInOrder(t *testing.T) {
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
	state, err := admission.NewPauses(r.rdb, admission.DefaultPrefix).State(t.Context(), "recognize")
	require.NoError(t, err)
	require.True(t, state.Has("auto:throttle"), "%+v", state)
	counts, err := redistest.CountTasks(t.Context(), r.rdb, "recognize")
	require.NoError(t, err)
	require.LessOrEqual(t, counts.Retry+counts.Scheduled, 2*8+1, "at most the tasks in slots, and those taken while it was being paused")
	require.Greater(t, counts.Pending, backlog-40)
	pending, err := r.inspect.ListPendingTasks("recognize", asynq.PageSize(0))
	require.NoError(t, err)
	at := map[string]int{}
	for i, p := range payloads {
		at[p.Key] = i
	}
	for i := 1; i < backlog-40; i++ { // the last ones may have come back
		require.Less(t, at[pending[i-1].ID], at[pending[i].ID], "the pending list keeps its order")
	}

	// An operator's pause stays when the automatic one is removed.
	_, _, err = admission.NewPauses(r.rdb, admission.DefaultPrefix).Add(t.Context(), "recognize", admission.PauseReason{Name: admission.ReasonManual, By: "test"})
	require.NoError(t, err)
	require.NoError(t, r.rdb.HSet(t.Context(), "reprise:{adm}:state:main:recognize", "throttled_until", 0).Err(), "the throttle ends")
	require.True(t, eventually(10*time.Second, func() bool {
		s, err := admission.NewPauses(r.rdb, admission.DefaultPrefix).State(t.Context(), "recognize")
		return err == nil && !s.Has("auto:throttle")
	}))
	require.True(t, r.paused("recognize"))

	_, _, err = admission.NewPauses(r.rdb, admission.DefaultPrefix).Remove(t.Context(), "recognize", admission.ReasonManual)
	require.NoError(t, err)
	before := r.sim.Bill().Requests
	require.True(t, eventually(10*time.Second, func() bool { return r.sim.Bill().Requests > before+3 }), "it resumes long before the throttle's ten minutes are over")
	stop()
}

func TestTasksArchivedByAHaltAreReplayedAfterResume(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1, Rules: []auddsim.Rule{{ID: "sub", Path: "recognize", Code: 904}}}, nil)
	p := r.clip("plan.wav")
	waiting := r.clip("waiting.wav")
	r.enqueue(p)
	r.run()
	s := r.verdict(p, 10*time.Second)
	require.Equal(t, tasks.Subscription, s.Outcome)
	require.Equal(t, tasks.Archive, s.Verdict)
	require.False(t, s.Final)
	r.enqueue(waiting)
	require.True(t, eventually(15*time.Second, func() bool { return r.paused("recognize") }), r.log.String())

	r.sim.RemoveRules("sub")
	_, err := r.gates().Resume(t.Context(), "main", tasks.Recognize, "test")
	require.NoError(t, err)
	ok := eventually(30*time.Second, func() bool {
		a, errA := r.store.TaskStatus(t.Context(), p.Key)
		b, errB := r.store.TaskStatus(t.Context(), waiting.Key)
		return errA == nil && errB == nil && a.Outcome == tasks.Match && b.Outcome == tasks.Match
	})
	require.True(t, ok, "%s\n%s", r.queueState(p), r.log.String())
	require.EqualValues(t, 2, r.requests(p))
}

func TestPauseInTheWebUICountsAsAnOperatorsPause(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, nil)
	first := r.clip("first.wav")
	r.enqueue(first)
	r.run()
	r.verdict(first, 10*time.Second)
	require.NoError(t, r.inspect.PauseQueue("recognize"))
	require.True(t, eventually(10*time.Second, func() bool {
		s, err := admission.NewPauses(r.rdb, admission.DefaultPrefix).State(t.Context(), "recognize")
		return err == nil && s.Has(admission.ReasonManual)
	}))
}

func TestTaskPinnedToABlockedSourceDoesNotPauseTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, func(o *worker.Options) {
		other := o.Sources[0]
		other.Name = "other"
		o.Sources = append(o.Sources, other)
	})
	bound, err := tasks.New(tasks.Recognize, r.clip("bound.wav").Input, tasks.Params{Source: "main"}, 0)
	require.NoError(t, err)
	r.run()
	_, err = r.gates().Halt(t.Context(), admission.Halt{Source: "main", Path: tasks.Recognize, Reason: "quota", By: "test", ProbeAfter: time.Hour})
	require.NoError(t, err)
	r.enqueue(bound)
	info := r.state(bound, asynq.TaskStateRetry, 20*time.Second)
	wait := time.Until(info.NextProcessAt)
	require.Greater(t, wait, 4*time.Minute, "it waits for its own source")
	require.Less(t, wait, 10*time.Minute, "it is retried before the probe: an operator may resume the source")
	free := r.clip("free.wav")
	r.enqueue(free)
	require.Equal(t, tasks.Match, r.verdict(free, 20*time.Second).Outcome)
	require.NotContains(t, r.log.String(), "queue paused")
}

// Every worker checks the units of the task for which the queue was paused: a
// budget may have too little left for it and enough for a smaller task.
func TestQueueStaysPausedUntilTheBudgetHasTheUnitsOfItsTask(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, func(o *worker.Options) {
		o.Admission.TimeZone = fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12) // midday
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Enterprise: {UnitsPerDay: 10}}
	})
	scan := func(name string, units int64) tasks.Payload {
		p, err := tasks.New(tasks.Enterprise, r.clip(name).Input, tasks.Params{}, units)
		require.NoError(t, err)
		return p
	}
	first := scan("first.wav", 6)
	r.enqueue(first)
	r.run()
	r.run()
	r.verdict(first, 20*time.Second)
	r.enqueue(scan("second.wav", 9))
	require.True(t, eventually(20*time.Second, func() bool { return r.paused("enterprise") }), r.log.String())
	require.False(t, eventually(4*time.Second, func() bool { return !r.paused("enterprise") }), r.log.String())
}

// A call with many units can use up a slow unit rate for half an hour.
func TestQueueIsPausedWhileItsRateIsUsedUpForLong(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {UnitsPerMinute: 10}}
	})
	first := r.clip("first.wav")
	r.enqueue(first)
	r.run()
	r.verdict(first, 20*time.Second)
	const state = "reprise:{adm}:state:main:recognize"
	require.NoError(t, r.rdb.HSet(t.Context(), state, "units_arrival_us", time.Now().Add(30*time.Minute).UnixMicro()).Err())
	const backlog = 100
	for i := range backlog {
		r.enqueue(r.clip(fmt.Sprintf("clip-%03d.wav", i)))
	}
	require.True(t, eventually(20*time.Second, func() bool { return r.paused("recognize") }), r.log.String())
	s, err := admission.NewPauses(r.rdb, admission.DefaultPrefix).State(t.Context(), "recognize")
	require.NoError(t, err)
	require.True(t, s.Has("auto:units"), "%+v", s)
	require.True(t, eventually(15*time.Second, func() bool {
		c, err := redistest.CountTasks(t.Context(), r.rdb, "recognize")
		return err == nil && c.Pending == backlog
	}), "%s", r.log.String())
	require.True(t, r.paused("recognize"))
	require.NoError(t, r.rdb.HSet(t.Context(), state, "units_arrival_us", 0).Err())
	require.True(t, eventually(5*time.Second, func() bool { return !r.paused("recognize") }), r.log.String())
}
