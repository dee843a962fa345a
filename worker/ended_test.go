package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/devredis"
	"reprise/store"
	"reprise/tasks"
)

// readOnly is a store that refuses writes while refuse is set.
type readOnly struct {
	*store.Store

	refuse atomic.Bool
}

func (s *readOnly) Settle(ctx context.Context, settlements ...store.Settlement) error {
	if s.refuse.Load() {
		return errors.New("the disk is full")
	}
	return s.Store.Settle(ctx, settlements...)
}

// While SQL refuses writes a verdict is only in the outbox. A redelivery finds it
// there, whether or not it asks admission.
func TestVerdictInTheOutboxIsRepeatedWithoutACall(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, nil)
	records := &readOnly{Store: r.store}
	records.refuse.Store(true)
	r.records = records
	clip := r.clip("a.wav")
	link, err := tasks.New(tasks.Recognize, tasks.Input{
		Kind: tasks.URLInput, URL: "https://clips.example/b.mp3?sig=1", ExpiresAt: time.Now().Add(time.Hour).Unix(),
	}, tasks.Params{}, 0)
	require.NoError(t, err)
	id := int64(77)
	upload, err := tasks.New(tasks.Upload, r.clip("c.wav").Input, tasks.Params{AudioID: &id, Source: "main"}, 0)
	require.NoError(t, err)
	all := []tasks.Payload{clip, link, upload}
	for _, p := range all {
		r.enqueue(p)
	}
	r.run()
	for _, p := range all {
		r.state(p, asynq.TaskStateCompleted, 20*time.Second)
	}
	require.EqualValues(t, 3, r.rdb.HLen(t.Context(), "reprise:{adm}:ended").Val())
	sent := r.sim.Bill().Requests
	for _, p := range []tasks.Payload{clip, upload} {
		require.NoError(t, r.inspect.RunTask(p.Path.Queue(""), p.Key))
	}
	link.Input.ExpiresAt = time.Now().Add(-time.Hour).Unix() // the hour is over
	require.NoError(t, r.inspect.DeleteTask("recognize", link.Key))
	r.enqueue(link)
	require.True(t, eventually(20*time.Second, func() bool { return strings.Count(r.log.String(), "answered from the store") == 3 }), r.log.String())
	for _, p := range all {
		r.state(p, asynq.TaskStateCompleted, 20*time.Second)
	}
	records.refuse.Store(false)
	for _, p := range all {
		require.Equal(t, tasks.Done, r.verdict(p, 20*time.Second).Verdict)
		require.Len(t, r.calls(p), 1)
	}
	require.Equal(t, sent, r.sim.Bill().Requests)
	require.True(t, eventually(10*time.Second, func() bool {
		return r.rdb.Exists(t.Context(), "reprise:{adm}:ended", "reprise:{adm}:outbox").Val() == 0
	}))
}

// `worker dev` falls back to a Redis in memory, which has another Lua.
func TestWorkerRunsOnTheRedisInMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1, Rules: []auddsim.Rule{{Name: "flaky*", Status: 503, Times: 1}}}, nil)
	inst, err := devredis.StartMemory("as the test needs")
	require.NoError(t, err)
	t.Cleanup(func() { _ = inst.Close() })
	opt, err := redis.ParseURL(inst.URL)
	require.NoError(t, err)
	r.rdb, r.url = redis.NewClient(opt), inst.URL
	t.Cleanup(func() { _ = r.rdb.Close() })
	r.inspect = asynq.NewInspectorFromRedisClient(r.rdb)
	plain, flaky := r.clip("plain.wav"), r.clip("flaky.wav")
	r.enqueue(plain)
	r.enqueue(flaky)
	r.run()
	require.Equal(t, tasks.Match, r.verdict(plain, 20*time.Second).Outcome)
	require.Equal(t, tasks.Match, r.verdict(flaky, 60*time.Second).Outcome)
	require.Len(t, r.calls(flaky), 2)
}
