package worker_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/tasks"
)

func TestMatchIsSettledWithItsResultAndOneUnit(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, nil)
	p := r.clip("song.wav")
	r.enqueue(p)
	r.run()
	s := r.verdict(p, 10*time.Second)
	require.Equal(t, tasks.Match, s.Outcome)
	require.Contains(t, string(s.Result), "title")
	r.state(p, asynq.TaskStateCompleted, 5*time.Second)
	calls := r.calls(p)
	require.Len(t, calls, 1)
	require.EqualValues(t, 1, calls[0].Units)
	require.Equal(t, "estimated", calls[0].UnitBasis)
	require.EqualValues(t, 1, r.sim.Bill().Units)
}

func TestTwo503ThenSuccessTakesThreeCallsAndTwoRetries(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1, Rules: []auddsim.Rule{{Path: "recognize", Status: 503, Times: 2}}}, nil)
	p := r.clip("flaky.wav")
	r.enqueue(p)
	r.run()
	s := r.verdict(p, 30*time.Second)
	require.Equal(t, tasks.Match, s.Outcome)
	require.EqualValues(t, 3, r.requests(p), "one request a delivery")
	info := r.state(p, asynq.TaskStateCompleted, 5*time.Second)
	require.Equal(t, 2, info.Retried)
	require.Len(t, r.calls(p), 3)
}

func TestThrottledCallsAreNotCountedAndHonourRetryAfter(t *testing.T) {
	t.Parallel()
	const after, times = time.Second, 4
	r := newRig(t, auddsim.Config{MatchShare: 1, Rules: []auddsim.Rule{{
		Path: "recognize", Status: http.StatusTooManyRequests, Times: times, AnswerHeader: map[string]string{"Retry-After": "1"},
	}}}, nil)
	p := r.clip("throttled.wav")
	r.enqueue(p)
	r.run()
	s := r.verdict(p, time.Minute)
	require.Equal(t, tasks.Match, s.Outcome)
	info := r.state(p, asynq.TaskStateCompleted, 5*time.Second)
	require.Zero(t, info.Retried, "no attempt counted")
	seen := r.sim.Requests(auddsim.Filter{Path: "recognize"})
	require.Len(t, seen, times+1)
	for i := 1; i < len(seen); i++ {
		require.GreaterOrEqual(t, seen[i].At.Sub(seen[i-1].At), after, "not before Retry-After")
	}
}

func TestPermanentErrorIsArchivedAfterOneRequestWithItsOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		rule auddsim.Rule
		want tasks.Outcome
	}{
		{"code 900", auddsim.Rule{Path: "recognize", Code: 900}, tasks.Authentication},
		{"code 300", auddsim.Rule{Path: "recognize", Code: 300}, tasks.InvalidAudio},
		{"code 700", auddsim.Rule{Path: "recognize", Code: 700}, tasks.InvalidRequest},
		{"a message that is not UTF-8", auddsim.Rule{Path: "recognize", Code: 500, MessageBytes: []byte("bad \xff\xfe audio")}, tasks.InvalidAudio},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{c.rule}}, nil)
			p := r.clip("final.wav")
			r.enqueue(p)
			r.run()
			s := r.verdict(p, 10*time.Second)
			require.Equal(t, c.want, s.Outcome)
			require.Equal(t, tasks.Archive, s.Verdict)
			info := r.state(p, asynq.TaskStateArchived, 5*time.Second)
			require.True(t, strings.HasPrefix(info.LastErr, string(c.want)), "archive text %q", info.LastErr)
			require.EqualValues(t, 1, r.requests(p))
		})
	}
}

func TestTaskThrottledAfterFourCountedAttemptsIsNotArchived(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1, Rules: []auddsim.Rule{
		{Path: "recognize", Status: 429, Skip: 4, Times: 1},
		{Path: "recognize", Fault: auddsim.FaultResetBeforeBody, Times: 4},
	}}, unlimitedBilling)
	p := r.clip("late-throttle.wav")
	r.enqueue(p)
	r.run()
	s := r.verdict(p, 90*time.Second)
	require.Equal(t, tasks.Match, s.Outcome, s.Reason)
}

func TestTaskWithLowAsynqLimitsIsArchivedWithoutACall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit  func() asynq.Option
		reason string
	}{
		"MaxRetry": {func() asynq.Option { return asynq.MaxRetry(0) }, "MaxRetry of 0"},
		"Timeout":  {func() asynq.Option { return asynq.Timeout(30 * time.Second) }, "Timeout or Deadline"},
		"Deadline": {func() asynq.Option { return asynq.Deadline(time.Now().Add(time.Minute)) }, "Timeout or Deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, auddsim.Config{MatchShare: 1}, nil)
			p := r.clip("raw.wav")
			r.enqueue(p, c.limit())
			r.run()
			s := r.verdict(p, 30*time.Second)
			require.Equal(t, tasks.Archive, s.Verdict)
			require.Equal(t, tasks.InvalidRequest, s.Outcome)
			require.False(t, s.Final, "it may be enqueued again")
			require.Contains(t, s.Reason, c.reason)
			info := r.state(p, asynq.TaskStateArchived, 10*time.Second)
			require.Equal(t, s.Reason, info.LastErr)
			require.Zero(t, r.requests(p))
		})
	}
}

func TestSettledTaskThatRunsAgainKeepsItsVerdictWithoutACall(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1, Rules: []auddsim.Rule{{Name: "bad*", Code: 300}}}, nil)
	good, bad := r.clip("good.wav"), r.clip("bad.wav")
	r.enqueue(good)
	r.enqueue(bad)
	r.run()
	r.state(good, asynq.TaskStateCompleted, 10*time.Second)
	r.state(bad, asynq.TaskStateArchived, 10*time.Second)
	for _, p := range []tasks.Payload{good, bad} {
		require.NoError(t, r.inspect.RunTask(p.Path.Queue(""), p.Key))
	}
	require.True(t, eventually(10*time.Second, func() bool {
		return strings.Count(r.log.String(), "answered from the store") == 2
	}))
	r.state(good, asynq.TaskStateCompleted, 10*time.Second)
	r.state(bad, asynq.TaskStateArchived, 10*time.Second)
	require.EqualValues(t, 1, r.requests(good))
	require.EqualValues(t, 1, r.requests(bad))
}
