package blackbox

import (
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/redistest"
	"reprise/tasks"
)

// The slow one: ten waits of 3 s and more.
func TestTenThrottlesCountNothingAndAreNeverEarly(t *testing.T) {
	t.Parallel()
	const after, times = 3 * time.Second, 10
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{{
		Path: auddsim.PathRecognize, Status: http.StatusTooManyRequests, Times: times,
		AnswerHeader: map[string]string{"Retry-After": "3"},
	}}})
	r.worker()
	p := r.enqueue(r.named("throttled.wav"))[0]
	s := r.standing(p, 2*patience)
	require.Equal(t, tasks.Match, s.Outcome)
	r.acked(patience)
	info, err := asynq.NewInspectorFromRedisClient(r.rdb).GetTaskInfo(p.Path.Queue(""), p.Key)
	require.NoError(t, err)
	require.Zero(t, info.Retried, "no attempt counted")
	requests := r.requests(p)
	require.Len(t, requests, times+1)
	for i := 1; i < len(requests); i++ {
		answered := requests[i-1].At.Add(requests[i-1].Took)
		require.GreaterOrEqual(t, requests[i].At.Sub(answered), after, "request %d is early", i+1)
	}
	for _, c := range r.calls(p)[:times] {
		require.Equal(t, tasks.Throttled, c.Outcome)
		require.Zero(t, c.Units)
		require.False(t, c.PossiblyBilled)
	}
	require.EqualValues(t, 1, r.sim.Bill().Units)
}

// asynq can store no error text that is not UTF-8: the task would run again
// for ever.
func TestAnswerThatIsNotUTF8IsArchivedByItsFirstDelivery(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{{
		Path: auddsim.PathRecognize, Code: 300, MessageBytes: []byte("bro\xffken \xc3\x28 audio \xf0\x9f"),
	}}})
	w := r.worker()
	p := r.enqueue(r.named("not-utf8.wav"))[0]
	require.Equal(t, redistest.Counts{Archived: 1}, r.acked(patience))
	s := r.standing(p, patience)
	deliveredOnce(t, w)
	info, err := asynq.NewInspectorFromRedisClient(r.rdb).GetTaskInfo(p.Path.Queue(""), p.Key)
	require.NoError(t, err)
	require.Regexp(t, `^invalid_audio: `, info.LastErr)
	require.True(t, utf8.ValidString(info.LastErr))
	require.True(t, utf8.ValidString(s.Reason))
	w.Kill() // nothing may be left that a lease's end would run again
	leases, err := redistest.AgeLeases(t.Context(), r.rdb, p.Path.Queue(""), redistest.LeaseOver)
	require.NoError(t, err)
	require.Zero(t, leases)
	require.Len(t, r.requests(p), 1)
}
