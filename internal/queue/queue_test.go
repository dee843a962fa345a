package queue_test

import (
	"context"
	"errors"
	"os"
	"strings"
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
	"reprise/tasks"
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

// serve runs the queue's tasks until the test ends. The task "done" succeeds, "held" runs until the end, others fail.
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

func TestNamesOmitsQueuesOfOtherPrograms(t *testing.T) {
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

func TestWorkersListsEachProcessOnceWithItsQueues(t *testing.T) {
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

func TestTaskCanBeReadAndDeleted(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	ctx := t.Context()
	_, err := c.Task(ctx, q, "nothing")
	require.ErrorIs(t, err, queue.ErrNotFound)
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
	require.NoError(t, c.Delete(ctx, q, "dead"))
	_, err = c.Task(ctx, q, "dead")
	require.ErrorIs(t, err, queue.ErrNotFound)
}

func TestEnqueueAddsAKeyOnceAndReplaceAddsItAgain(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	ctx := t.Context()
	in := tasks.Input{Kind: tasks.FileInput, Path: "/clip.wav", Size: 9, SHA256: strings.Repeat("0", 64)}
	p, err := tasks.New(tasks.Recognize, in, tasks.Params{}, 0)
	require.NoError(t, err)
	added, err := c.Enqueue(ctx, p, "")
	require.NoError(t, err)
	require.True(t, added)
	added, err = c.Enqueue(ctx, p, "")
	require.NoError(t, err)
	require.False(t, added)

	serve(t, rdb)
	waitState(t, c, p.Key, queue.Retry)
	added, err = c.Replace(ctx, p, "")
	require.NoError(t, err)
	require.True(t, added)

	enqueue(t, rdb, "held")
	waitState(t, c, "held", queue.Active)
	p.Key = "held"
	_, err = c.Replace(ctx, p, "")
	require.ErrorIs(t, err, queue.ErrActive)
}

func TestTasksAreFoundWithTheirNextRunAndPosition(t *testing.T) {
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

	found, err := c.Tasks(ctx, []queue.Ref{{Queue: q, ID: "first"}, {Queue: q, ID: "later"}, {Queue: q, ID: "nothing"}, {Queue: "upload", ID: "first"}})
	require.NoError(t, err)
	require.Equal(t, queue.Task{Queue: q, ID: "first", State: queue.Pending}, found[0])
	require.Equal(t, queue.Scheduled, found[1].State)
	require.WithinDuration(t, due, found[1].NextRun, 2*time.Second)
	require.Equal(t, queue.NotQueued, found[2].State)
	require.Equal(t, queue.NotQueued, found[3].State)
}

func TestQueueIsPausedUntilTheLastReasonIsRemoved(t *testing.T) {
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
	require.False(t, changed, "the ends differ by less than a second")

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

func TestReconcileAdoptsAFlagChangedOutsideReprise(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	ctx := t.Context()
	page := asynq.NewInspectorFromRedisClient(rdb)
	require.NoError(t, page.PauseQueue(q))
	state, action, err := c.Reconcile(ctx, q)
	require.NoError(t, err)
	require.Equal(t, queue.ActionAdopt, action)
	require.True(t, state.Has(admission.ReasonManual))
	_, action, err = c.Reconcile(ctx, q)
	require.NoError(t, err)
	require.Equal(t, queue.ActionNone, action)

	require.NoError(t, page.UnpauseQueue(q))
	state, action, err = c.Reconcile(ctx, q)
	require.NoError(t, err)
	require.Equal(t, queue.ActionDrop, action)
	require.False(t, state.Paused())
}

// A flag that was cleared outside Reprise drops the existing reasons, but not one that is added later.
func TestReasonAddedAfterAnOperatorClearedTheFlagIsKept(t *testing.T) {
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

// An operator who resumes a queue on asynq's web page wins over automatic reasons for a while.
func TestAutomaticReasonsAreNotAddedAfterAnOperatorResumedTheQueue(t *testing.T) {
	t.Parallel()
	c, rdb := newClient(t)
	ctx := t.Context()
	auto := admission.PauseReason{Name: admission.AutoReason + "halt", Until: time.Now().Add(time.Hour), By: "worker"}
	_, _, err := c.AddReason(ctx, q, auto)
	require.NoError(t, err)
	require.NoError(t, asynq.NewInspectorFromRedisClient(rdb).UnpauseQueue(q))
	state, changed, err := c.AddReason(ctx, q, auto)
	require.NoError(t, err)
	require.False(t, changed)
	require.WithinDuration(t, time.Now().Add(30*time.Second), state.Override, 20*time.Second)
	flag, err := c.Paused(ctx, q)
	require.NoError(t, err)
	require.False(t, flag)

	require.NoError(t, rdb.HSet(ctx, admission.DefaultPrefix+"pause:"+q, "override_until", 1).Err())
	_, changed, err = c.AddReason(ctx, q, auto)
	require.NoError(t, err)
	require.True(t, changed)
}

// A crash leaves an intent in Redis. The next reconciliation finishes it, and does not take the half-made change for one
// by an operator.
func TestReconcileFinishesAFlagChangeThatACrashInterrupted(t *testing.T) {
	t.Parallel()
	auto := admission.PauseReason{Name: admission.AutoReason + "halt", By: "worker"}
	for name, row := range map[string]struct {
		intent         admission.PauseFlag
		before, reason bool // asynq's flag after the crash; whether the queue has a pause reason
	}{
		"before the flag was set":                        {admission.FlagPausing, false, true},
		"after the flag was set":                         {admission.FlagPausing, true, true},
		"after the flag was set, and the reason ended":   {admission.FlagPausing, true, false},
		"before the flag was cleared":                    {admission.FlagUnpausing, true, false},
		"after the flag was cleared":                     {admission.FlagUnpausing, false, false},
		"before the flag was cleared, and a reason came": {admission.FlagUnpausing, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, rdb := newClient(t)
			ctx := t.Context()
			page, pauses := asynq.NewInspectorFromRedisClient(rdb), admission.NewPauses(rdb, admission.DefaultPrefix)
			if row.reason {
				_, _, err := pauses.Add(ctx, q, auto)
				require.NoError(t, err)
			}
			state, err := pauses.State(ctx, q)
			require.NoError(t, err)
			require.NoError(t, pauses.StoreFlag(ctx, q, &state, row.intent, admission.ReasonsKeep))
			if row.before {
				require.NoError(t, page.PauseQueue(q))
			}

			state, _, err = c.Reconcile(ctx, q)
			require.NoError(t, err)
			require.Equal(t, row.reason, state.Has(auto.Name))
			require.False(t, state.Has(admission.ReasonManual))
			flag, err := c.Paused(ctx, q)
			require.NoError(t, err)
			require.Equal(t, row.reason, flag)
			if !flag {
				return
			}
			require.NoError(t, page.UnpauseQueue(q))
			_, action, err := c.Reconcile(ctx, q)
			require.NoError(t, err)
			require.Equal(t, queue.ActionDrop, action, "the change is confirmed: an operator's change is noticed")
		})
	}
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
