package redistest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

const queue = "q"

func TestTaskWithAnExpiredLeaseIsRetriedAndRunsWhenTheRetryIsAged(t *testing.T) {
	t.Parallel()
	rdb := redistest.DB(t)
	proxy := redistest.NewProxy(t, rdb.Options().Addr)
	lost := sameDB(t, rdb, proxy.Addr())
	enqueue(t, rdb, "lost", asynq.MaxRetry(3))

	running, release := make(chan struct{}), make(chan struct{})
	first := serve(t, lost, func(context.Context, *asynq.Task) error {
		close(running)
		<-release
		return nil
	})
	<-running
	proxy.Cut() // the first worker can no longer extend its lease
	n, err := redistest.ExpireLeases(t.Context(), rdb, queue)
	require.NoError(t, err)
	require.Equal(t, 1, n)

	again := make(chan struct{})
	second := serve(t, rdb, func(context.Context, *asynq.Task) error { close(again); return nil })
	waitState(t, rdb, "lost", "retry")
	info, err := asynq.NewInspectorFromRedisClient(rdb).GetTaskInfo(queue, "lost")
	require.NoError(t, err)
	require.Contains(t, info.LastErr, "lease expired")
	n, err = redistest.AgeRetries(t.Context(), rdb, queue, time.Hour)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	<-again
	waitState(t, rdb, "lost", "")
	close(release)
	proxy.Restore()
	first.Shutdown()
	second.Shutdown()
}

func TestCountTasksAgreesWithTheInspector(t *testing.T) {
	t.Parallel()
	rdb := redistest.DB(t)
	none, err := redistest.CountTasks(t.Context(), rdb, queue)
	require.NoError(t, err)
	require.Zero(t, none)

	enqueue(t, rdb, "done", asynq.Retention(time.Hour))
	enqueue(t, rdb, "dead", asynq.MaxRetry(0))
	enqueue(t, rdb, "again", asynq.MaxRetry(5))
	srv := serve(t, rdb, func(_ context.Context, task *asynq.Task) error {
		if string(task.Payload()) == "done" {
			return nil
		}
		return errors.New("refused")
	})
	for id, state := range map[string]string{"done": "completed", "dead": "archived", "again": "retry"} {
		waitState(t, rdb, id, state)
	}
	srv.Shutdown()
	enqueue(t, rdb, "pending")
	enqueue(t, rdb, "later", asynq.ProcessIn(time.Hour))

	got, err := redistest.CountTasks(t.Context(), rdb, queue)
	require.NoError(t, err)
	info, err := asynq.NewInspectorFromRedisClient(rdb).GetQueueInfo(queue)
	require.NoError(t, err)
	require.Equal(t, redistest.Counts{
		Pending: info.Pending, Active: info.Active, Scheduled: info.Scheduled,
		Retry: info.Retry, Archived: info.Archived, Completed: info.Completed,
	}, got)
	require.Equal(t, redistest.Counts{Pending: 1, Scheduled: 1, Retry: 1, Archived: 1, Completed: 1}, got)
	require.Equal(t, 5, got.Total())
}

func enqueue(t *testing.T, rdb *redis.Client, id string, opts ...asynq.Option) {
	t.Helper()
	opts = append(opts, asynq.TaskID(id), asynq.Queue(queue))
	_, err := asynq.NewClientFromRedisClient(rdb).Enqueue(asynq.NewTask("test", []byte(id)), opts...)
	require.NoError(t, err)
}

func serve(t *testing.T, rdb *redis.Client, h asynq.HandlerFunc) *asynq.Server {
	t.Helper()
	srv := asynq.NewServerFromRedisClient(rdb, asynq.Config{
		Queues: map[string]int{queue: 1}, Concurrency: 2, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Minute },
	})
	require.NoError(t, srv.Start(h))
	return srv
}

func waitState(t *testing.T, rdb *redis.Client, id, want string) {
	t.Helper()
	ctx := within(t, patience)
	proctest.Eventually(t, func() bool {
		state, err := redistest.TaskState(ctx, rdb, queue, id)
		return err == nil && state == want
	}, "task %s never became %q", id, want)
}
