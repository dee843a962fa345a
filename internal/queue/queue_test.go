package queue_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/proctest"
	"reprise/internal/queue"
	"reprise/internal/queue/asynqkey"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(m).Run()) }

const q = "recognize"

func newClient(t *testing.T) (*queue.Client, *redis.Client) {
	t.Helper()
	rdb := redistest.DB(t)
	return queue.New(rdb, admission.DefaultPrefix), rdb
}

func enqueue(t *testing.T, rdb *redis.Client, id string, opts ...asynq.Option) {
	t.Helper()
	opts = append([]asynq.Option{asynq.TaskID(id), asynq.Queue(q)}, opts...)
	_, err := asynq.NewClientFromRedisClient(rdb).Enqueue(asynq.NewTask("test", []byte(id)), opts...)
	require.NoError(t, err)
}

// serve runs tasks of the queue until the test ends: "done" succeeds, "held" runs until then, all others fail.
func serve(t *testing.T, rdb *redis.Client) {
	t.Helper()
	release := make(chan struct{})
	srv := asynq.NewServerFromRedisClient(rdb, asynq.Config{
		Queues: map[string]int{q: 1}, Concurrency: 2, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Minute },
	})
	require.NoError(t, srv.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		switch string(task.Payload()) {
		case "done":
			return nil
		case "held":
			<-release
			return nil
		}
		return errors.New("refused")
	})))
	t.Cleanup(func() { close(release); srv.Shutdown() })
}

func waitState(t *testing.T, c *queue.Client, id string, state queue.State) queue.Task {
	t.Helper()
	var task queue.Task
	proctest.Eventually(t, func() bool {
		var err error
		task, err = c.Task(t.Context(), q, id)
		return err == nil && task.State == state
	}, "task %s never became %s", id, state)
	return task
}

func TestStatsOfAnUnusedQueueAreZero(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	stats, err := c.Stats(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, queue.Stats{Queue: q}, stats)
	names, err := c.Names(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
	none, err := c.AllStats(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestStatsCountTasksByState(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	enqueue(t, rdb, "done", asynq.Retention(time.Hour))
	enqueue(t, rdb, "dead", asynq.MaxRetry(0))
	enqueue(t, rdb, "again", asynq.MaxRetry(5))
	enqueue(t, rdb, "held")
	serve(t, rdb)
	waitState(t, c, "done", queue.Completed)
	waitState(t, c, "dead", queue.Archived)
	waitState(t, c, "again", queue.Retry)
	waitState(t, c, "held", queue.Active)
	require.NoError(t, asynq.NewInspectorFromRedisClient(rdb).PauseQueue(q))
	enqueue(t, rdb, "pending")
	enqueue(t, rdb, "later", asynq.ProcessIn(time.Hour))

	stats, err := c.Stats(t.Context(), q)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), stats.OldestPending, time.Minute)
	stats.OldestPending = time.Time{}
	require.Equal(t, queue.Stats{Queue: q, Pending: 1, Active: 1, Scheduled: 1, Retry: 1, Archived: 1, Completed: 1, Paused: true}, stats)
	require.EqualValues(t, 3, stats.Waiting())
	paused, err := c.Paused(t.Context(), q)
	require.NoError(t, err)
	require.True(t, paused)
}

func TestNamesLeaveOutQueuesOfOthers(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	enqueue(t, rdb, "a", asynq.Queue("upload.ugc"))
	enqueue(t, rdb, "b")
	enqueue(t, rdb, "c", asynq.Queue("default"))
	names, err := c.Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"recognize", "upload.ugc"}, names)
	all, err := c.All(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"default", "recognize", "upload.ugc"}, all)
}

func TestWorkersAreProcessesWithTheirQueues(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	workers, err := c.Workers(t.Context())
	require.NoError(t, err)
	require.Empty(t, workers)
	serve(t, rdb)
	serve(t, rdb) // a second server of the same process
	proctest.Eventually(t, func() bool {
		return rdb.ZCard(t.Context(), asynqkey.Servers).Val() == 2
	})
	workers, err = c.Workers(t.Context())
	require.NoError(t, err)
	require.Len(t, workers, 1)
	require.True(t, workers[0].Serves(q))
	require.False(t, workers[0].Serves("upload"))
}

func TestTaskIsFoundRunAndDeleted(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	ctx := t.Context()
	_, err := c.Task(ctx, q, "nothing")
	require.ErrorIs(t, err, queue.ErrNotFound)
	require.ErrorIs(t, c.Run(ctx, q, "nothing"), queue.ErrNotFound)
	require.NoError(t, c.Delete(ctx, q, "nothing"))

	enqueue(t, rdb, "dead", asynq.MaxRetry(0))
	enqueue(t, rdb, "again")
	enqueue(t, rdb, "held")
	serve(t, rdb)
	dead := waitState(t, c, "dead", queue.Archived)
	require.Equal(t, "refused", dead.LastError)
	require.Zero(t, dead.NextRun)
	require.True(t, dead.State.Ended())
	again := waitState(t, c, "again", queue.Retry)
	require.WithinDuration(t, time.Now().Add(time.Minute), again.NextRun, 30*time.Second)
	require.True(t, again.State.Waits())
	waitState(t, c, "held", queue.Active)
	require.ErrorIs(t, c.Delete(ctx, q, "held"), queue.ErrActive)

	require.NoError(t, asynq.NewInspectorFromRedisClient(rdb).PauseQueue(q))
	require.NoError(t, c.Run(ctx, q, "dead"))
	waitState(t, c, "dead", queue.Pending)
	require.NoError(t, c.Delete(ctx, q, "dead"))
	_, err = c.Task(ctx, q, "dead")
	require.ErrorIs(t, err, queue.ErrNotFound)
}

func TestPlacesAndLineOfTasks(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	ctx := t.Context()
	enqueue(t, rdb, "first")
	enqueue(t, rdb, "second")
	enqueue(t, rdb, "third")
	due := time.Now().Add(time.Hour)
	enqueue(t, rdb, "later", asynq.ProcessAt(due))

	line, err := c.Line(ctx, q, "third")
	require.NoError(t, err)
	require.EqualValues(t, 2, line.Ahead)
	require.WithinDuration(t, time.Now(), line.Since, time.Minute)
	line, err = c.Line(ctx, q, "later")
	require.NoError(t, err)
	require.Equal(t, queue.Line{Ahead: -1}, line)

	places, err := c.Places(ctx, []queue.Ref{{Queue: q, ID: "first"}, {Queue: q, ID: "later"}, {Queue: q, ID: "nothing"}, {Queue: "upload", ID: "first"}})
	require.NoError(t, err)
	require.Equal(t, queue.Place{State: queue.Pending}, places[0])
	require.Equal(t, queue.Scheduled, places[1].State)
	require.WithinDuration(t, due, places[1].Due, 2*time.Second)
	require.Equal(t, queue.Place{}, places[2])
	require.Equal(t, queue.Place{}, places[3])
}

func TestReasonPausesTheQueueUntilTheLastOneIsRemoved(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	ctx := t.Context()
	paused := func(expected bool) {
		t.Helper()
		flag, err := c.Paused(ctx, q)
		require.NoError(t, err)
		require.Equal(t, expected, flag)
	}
	auto := admission.PauseReason{Name: admission.AutoReason + "halt", Until: time.Now().Add(time.Hour), By: "worker-1"}
	_, changed, err := c.AddReason(ctx, q, auto)
	require.NoError(t, err)
	require.True(t, changed)
	paused(true)
	auto.Until = auto.Until.Add(500 * time.Millisecond)
	_, changed, err = c.AddReason(ctx, q, auto)
	require.NoError(t, err)
	require.False(t, changed, "it ends at about the same time")

	state, changed, err := c.AddReason(ctx, q, admission.PauseReason{Name: admission.ReasonManual, By: "ops"})
	require.NoError(t, err)
	require.True(t, changed)
	require.Len(t, state.Reasons, 2)
	_, changed, err = c.AddReason(ctx, q, admission.PauseReason{Name: admission.ReasonManual, By: "ops"})
	require.NoError(t, err)
	require.False(t, changed)

	_, changed, err = c.RemoveReason(ctx, q, admission.AutoReason+"*")
	require.NoError(t, err)
	require.True(t, changed)
	paused(true)
	state, changed, err = c.RemoveReason(ctx, q, admission.ReasonManual)
	require.NoError(t, err)
	require.True(t, changed)
	require.False(t, state.Paused())
	paused(false)
}

func TestReconcileAdoptsAndDropsWhatWasDoneElsewhere(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	ctx := t.Context()
	page := asynq.NewInspectorFromRedisClient(rdb)
	require.NoError(t, page.PauseQueue(q))
	state, action, err := c.Reconcile(ctx, q)
	require.NoError(t, err)
	require.Equal(t, admission.ActionAdopt, action)
	require.True(t, state.Has(admission.ReasonManual))
	_, action, err = c.Reconcile(ctx, q)
	require.NoError(t, err)
	require.Equal(t, admission.ActionNone, action)

	require.NoError(t, page.UnpauseQueue(q))
	state, action, err = c.Reconcile(ctx, q)
	require.NoError(t, err)
	require.Equal(t, admission.ActionDrop, action)
	require.False(t, state.Paused())
}

// A flag that was cleared elsewhere drops the reasons known until then, not one that is added after it.
func TestNewReasonSurvivesAFlagClearedElsewhere(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	ctx := t.Context()
	_, _, err := c.AddReason(ctx, q, admission.PauseReason{Name: admission.AutoReason + "halt", Until: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.NoError(t, asynq.NewInspectorFromRedisClient(rdb).UnpauseQueue(q))
	state, changed, err := c.AddReason(ctx, q, admission.PauseReason{Name: admission.ReasonManual, By: "ops"})
	require.NoError(t, err)
	require.True(t, changed)
	require.Len(t, state.Reasons, 1)
	require.True(t, state.Has(admission.ReasonManual))
}

func TestConcurrentPausesAllSucceed(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			own := queue.New(rdb, admission.DefaultPrefix)
			_, _, errs[i] = own.AddReason(t.Context(), q, admission.PauseReason{
				Name: admission.AutoReason + "halt", Until: time.Now().Add(time.Duration(i+1) * time.Minute), By: "worker",
			})
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	flag, err := c.Paused(t.Context(), q)
	require.NoError(t, err)
	require.True(t, flag)
	state, err := c.PauseState(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, state.Reasons, 1)
}
