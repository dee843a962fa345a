package devredis_test

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

// The queue works on both kinds of instance.
func TestQueueCompletesRetriesAndArchivesTasks(t *testing.T) {
	t.Parallel()
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		queueCycle(t, client(t, start(t, t.TempDir())))
	})
	t.Run("in memory", func(t *testing.T) {
		t.Parallel()
		queueCycle(t, client(t, inMemory(t)))
	})
}

func queueCycle(t *testing.T, rdb *redis.Client) {
	t.Helper()
	const queue = "q"
	ctx := t.Context()
	c := asynq.NewClientFromRedisClient(rdb)
	for id, retries := range map[string]int{"fine": 3, "twice": 3, "dead": 0} {
		opts := []asynq.Option{asynq.TaskID(id), asynq.Queue(queue), asynq.MaxRetry(retries), asynq.Retention(time.Hour)}
		_, err := c.Enqueue(asynq.NewTask("test", []byte(id)), opts...)
		require.NoError(t, err)
		_, err = c.Enqueue(asynq.NewTask("test", []byte(id)), opts...)
		require.ErrorIs(t, err, asynq.ErrTaskIDConflict)
	}
	srv := asynq.NewServerFromRedisClient(rdb, asynq.Config{
		Queues: map[string]int{queue: 1}, Concurrency: 2, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour },
	})
	require.NoError(t, srv.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		retried, _ := asynq.GetRetryCount(ctx)
		if id := string(task.Payload()); id == "dead" || id == "twice" && retried == 0 {
			return errors.New("refused")
		}
		return nil
	})))
	defer srv.Shutdown()
	wait := func(id, want string) {
		t.Helper()
		proctest.Eventually(t, func() bool {
			state, err := redistest.TaskState(ctx, rdb, queue, id)
			return err == nil && state == want
		}, "task %s never became %q", id, want)
	}
	wait("fine", "completed")
	wait("dead", "archived")
	wait("twice", "retry")
	n, err := redistest.AgeRetries(ctx, rdb, queue, 2*time.Hour)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	wait("twice", "completed")
	info, err := asynq.NewInspectorFromRedisClient(rdb).GetQueueInfo(queue)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, []int{info.Completed, info.Archived})
}
