package blackbox

import (
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/redistest"
	"reprise/tasks"
)

// This test waits ten times for 3 s or more.
func TestThrottledTaskUsesNoAttemptAndIsRetriedAfterRetryAfter(t *testing.T) {
	t.Parallel()
	const after, times = 3 * time.Second, 10
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{{
		Path: auddsim.PathRecognize, Status: http.StatusTooManyRequests, Times: times,
		AnswerHeader: map[string]string{"Retry-After": "3"},
	}}})
	r.Worker()
	p := enqueue(r, clip(r, "throttled.wav"))[0]
	s := r.WaitFinished(p)
	require.Equal(t, tasks.Match, s.Outcome)
	r.WaitIdle(recognize)
	info, err := r.Inspector.GetTaskInfo(recognize, p.Key)
	require.NoError(t, err)
	require.Zero(t, info.Retried, "no attempt counted")
	requests := r.Requests(p)
	require.Len(t, requests, times+1)
	for i := 1; i < len(requests); i++ {
		answered := requests[i-1].At.Add(requests[i-1].Took)
		require.GreaterOrEqual(t, requests[i].At.Sub(answered), after, "request %d is early", i+1)
	}
	for _, c := range callsOf(r, p)[:times] {
		require.Equal(t, tasks.Throttled, c.Outcome)
		require.Zero(t, c.Units)
		require.False(t, c.PossiblyBilled)
	}
	require.EqualValues(t, 1, r.Sim.Bill().Units)
}

// asynq cannot store an error text that is not UTF-8: without a valid text the
// task would be delivered again and again.
func TestErrorMessageThatIsNotUTF8IsArchivedAfterOneDelivery(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{{
		Path: auddsim.PathRecognize, Code: 300, MessageBytes: []byte("bro\xffken \xc3\x28 audio \xf0\x9f"),
	}}})
	w := r.Worker()
	p := enqueue(r, clip(r, "not-utf8.wav"))[0]
	require.Equal(t, redistest.Counts{Archived: 1}, r.WaitIdle(recognize))
	s := r.WaitFinished(p)
	requireDeliveredOnce(t, w)
	info, err := r.Inspector.GetTaskInfo(recognize, p.Key)
	require.NoError(t, err)
	require.Regexp(t, `^invalid_audio: `, info.LastErr)
	require.True(t, utf8.ValidString(info.LastErr))
	require.True(t, utf8.ValidString(s.Reason))
	w.Kill()
	require.Zero(t, r.ExpireLeases(recognize), "no lease is left whose end would run the task again")
	require.Len(t, r.Requests(p), 1)
}
