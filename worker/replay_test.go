package worker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/queue/asynqkey"
	"reprise/store"
	"reprise/tasks"
)

// refusedByAccount stores the verdict of a task that AudD refused for an
// account reason.
func (r *rig) refusedByAccount(p tasks.Payload) {
	r.t.Helper()
	at := time.Now()
	raw, err := json.Marshal(p)
	require.NoError(r.t, err)
	require.NoError(r.t, r.store.Settle(r.t.Context(), store.Settlement{
		Key: p.Key, Path: p.Path, Queue: p.Path.Queue(""), Payload: raw, Finished: true, Verdict: tasks.Archive, Outcome: tasks.Authentication,
		Reason: "authentication: refused", At: at,
		Call: &store.Call{AttemptID: "refused-" + p.Key, Key: p.Key, Source: "main", Path: p.Path, Outcome: tasks.Authentication, Verdict: tasks.Archive, At: at},
	}))
}

// The verdict is stored before the ack, so a replay may find a task whose ack
// has not arrived.
func TestTaskArchivedAfterItsReplayBeganIsReplayed(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, nil)
	ctx, p := t.Context(), r.clip("slow-ack.wav")
	r.enqueue(p)
	const queue = "recognize"
	task := asynqkey.Task(queue, p.Key)
	require.NoError(t, r.rdb.LMove(ctx, asynqkey.Of(queue, asynqkey.Pending), asynqkey.Of(queue, asynqkey.Active), "RIGHT", "LEFT").Err())
	require.NoError(t, r.rdb.ZAdd(ctx, asynqkey.Of(queue, asynqkey.Lease), redis.Z{Score: float64(time.Now().Add(time.Hour).Unix()), Member: p.Key}).Err())
	require.NoError(t, r.rdb.HSet(ctx, task, "state", "active").Err())
	r.refusedByAccount(p)
	require.NoError(t, r.rdb.HSet(ctx, "reprise:{replay}:queues", "recognize", time.Now().Add(time.Second).UnixMilli()).Err())
	r.run()
	require.True(t, eventually(10*time.Second, func() bool {
		s, err := r.store.TaskStatus(ctx, p.Key)
		return err == nil && !s.Finished
	}), "reopened")
	require.False(t, eventually(3*time.Second, func() bool { return r.rdb.HLen(ctx, "reprise:{replay}:started").Val() == 0 }), "the note stays")

	require.NoError(t, r.rdb.LRem(ctx, asynqkey.Of(queue, asynqkey.Active), 1, p.Key).Err()) // the ack
	require.NoError(t, r.rdb.ZRem(ctx, asynqkey.Of(queue, asynqkey.Lease), p.Key).Err())
	require.NoError(t, r.rdb.ZAdd(ctx, asynqkey.Of(queue, asynqkey.Archived), redis.Z{Score: float64(time.Now().Unix()), Member: p.Key}).Err())
	require.NoError(t, r.rdb.HSet(ctx, task, "state", "archived").Err())
	require.Equal(t, tasks.Match, r.verdict(p, 15*time.Second).Outcome)
	r.state(p, asynq.TaskStateCompleted, 5*time.Second)
	require.True(t, eventually(5*time.Second, func() bool {
		return r.rdb.Exists(ctx, "reprise:{replay}:started", "reprise:{replay}:queues").Val() == 0
	}))
}

// The queue is not paused, and no waiting task can probe the source.
func TestLastTasksOfABatchAreReplayedAfterAHalt(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1, Rules: []auddsim.Rule{{ID: "sub", Path: "recognize", Code: 904}}}, nil)
	var last []tasks.Payload
	for _, name := range []string{"a.wav", "b.wav", "c.wav", "d.wav"} {
		last = append(last, r.clip(name))
	}
	for _, p := range last {
		r.enqueue(p)
	}
	r.run()
	require.True(t, eventually(20*time.Second, func() bool {
		info, err := r.inspect.GetQueueInfo("recognize")
		return err == nil && info.Archived > 0 && info.Active+info.Pending == 0
	}), r.log.String())
	archived := r.requests(last[0]) + r.requests(last[1]) + r.requests(last[2]) + r.requests(last[3])
	r.sim.RemoveRules("sub")
	_, err := r.gates().Resume(t.Context(), "main", tasks.Recognize, "test")
	require.NoError(t, err)
	for _, p := range last {
		require.True(t, eventually(30*time.Second, func() bool {
			s, err := r.store.TaskStatus(t.Context(), p.Key)
			return err == nil && s.Outcome == tasks.Match
		}), "%s\n%s", r.queueState(p), r.log.String())
	}
	again := r.requests(last[0]) + r.requests(last[1]) + r.requests(last[2]) + r.requests(last[3])
	require.EqualValues(t, len(last), again-archived, "one successful call each")
}
