package worker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

// Regression: a cancelled delivery asked for permits in a tight loop.
func TestCancelledDeliveryThatWaitsForAGateEndsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 2}}
	})
	first, second := r.clip("a.wav"), r.clip("b.wav")
	r.enqueue(first)
	r.run()
	r.verdict(first, 20*time.Second)
	r.enqueue(second)
	r.state(second, asynq.TaskStateActive, 10*time.Second)
	require.True(t, eventually(20*time.Second, func() bool {
		_ = r.inspect.CancelProcessing(second.Key) // lost if the handler has not subscribed yet
		info, err := r.inspect.GetTaskInfo("recognize", second.Key)
		return err == nil && info.State == asynq.TaskStateRetry
	}))
	r.verdict(second, time.Minute)
	require.EqualValues(t, 1, r.requests(second))
}

type panicky struct{ calls atomic.Int64 }

func (p *panicky) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.calls.Add(1) == 1 {
		panic("a bug in a decoder")
	}
	return http.DefaultTransport.RoundTrip(req)
}

// Regression: after a panic the permit was renewed until the process ended.
func TestPanicInACallReleasesItsPermitAndIsCharged(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, func(o *worker.Options) {
		o.Transport, o.SkipAuthCheck = &panicky{}, true
	})
	p := r.clip("a.wav")
	r.enqueue(p)
	r.run()
	require.Equal(t, tasks.Match, r.verdict(p, 30*time.Second).Outcome)
	calls := r.calls(p)
	require.Len(t, calls, 2)
	outcomes := map[tasks.Outcome]bool{calls[0].Outcome: true, calls[1].Outcome: true}
	require.True(t, outcomes[tasks.Crash] && outcomes[tasks.Match], "%v", outcomes)
	require.True(t, eventually(5*time.Second, func() bool { return r.rdb.ZCard(t.Context(), "reprise:{adm}:permits").Val() == 0 }))
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// Regression: the same work in two groups' queues was paid twice when both waited.
func TestSameKeyInTwoQueuesMakesOneCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {Concurrency: 1}}
		o.Admission.Groups = map[string]admission.Group{"g": {Weight: 1}}
		o.Slots.Recognize = 30
	})
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Name: "slow*"})
	r.enqueue(r.clip("slow.wav"))
	r.run()
	_, err := r.sim.WaitHeld(t.Context(), 1)
	require.NoError(t, err)
	client := asynq.NewClientFromRedisClient(r.rdb)
	var all []tasks.Payload
	for i := range 8 {
		p := r.clip(fmt.Sprintf("k%d.wav", i))
		all = append(all, p)
		r.enqueue(p)
		task, err := p.Task("g")
		require.NoError(t, err)
		_, err = client.EnqueueContext(t.Context(), task)
		require.NoError(t, err)
	}
	require.True(t, eventually(10*time.Second, func() bool {
		own, err := redistest.CountTasks(t.Context(), r.rdb, "recognize")
		group, errGroup := redistest.CountTasks(t.Context(), r.rdb, "recognize.g")
		return err == nil && errGroup == nil && own.Active == 1+len(all) && group.Active == len(all)
	}), "both deliveries of each wait for the one permit: %s", r.log.String())
	require.Equal(t, 1, r.sim.Release(hold))
	require.True(t, eventually(60*time.Second, func() bool {
		for _, p := range all {
			for _, queue := range []string{"recognize", "recognize.g"} {
				info, err := r.inspect.GetTaskInfo(queue, p.Key)
				if err != nil || info.State != asynq.TaskStateCompleted {
					return false
				}
			}
		}
		return true
	}), r.log.String())
	for _, p := range all {
		require.EqualValues(t, 1, r.requests(p))
	}
}

// Regression: HSCAN returns empty pages before its end, where the drain stopped.
func TestLargeOutboxIsDrainedCompletely(t *testing.T) {
	t.Parallel()
	const n, entries = 12_000, "reprise:{adm}:outbox"
	r := newRig(t, auddsim.Config{}, nil)
	at := time.Now()
	pipe := r.rdb.Pipeline()
	for i := range n {
		key := fmt.Sprintf("recognize_%052d", i)
		raw, err := json.Marshal(map[string]any{"Settlement": store.Settlement{
			Key: key, Path: tasks.Recognize, Queue: "recognize", Verdict: tasks.Done, Outcome: tasks.NoMatch, Finished: true, Result: json.RawMessage("null"), At: at,
		}})
		require.NoError(t, err)
		pipe.HSet(t.Context(), entries, key+"@0", raw)
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	r.run()
	require.True(t, eventually(time.Minute, func() bool { return r.rdb.HLen(t.Context(), entries).Val() == 0 }))
	rows, err := r.store.Tasks(t.Context(), store.TaskFilter{Outcome: tasks.NoMatch, Limit: n + 1})
	require.NoError(t, err)
	require.Len(t, rows, n)
}
