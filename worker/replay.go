package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"reprise/store"
	"reprise/tasks"
)

// replays runs again, paced, what was archived for an account reason before
// its source was opened (spec R19). What is under way is in Redis, so any
// worker goes on with it.
type replays struct {
	w         *Worker
	rdb       redis.UniversalClient
	inspector *asynq.Inspector
}

// Keys of the replays; without TTL, they go when the work is done.
const (
	replayQueues  = "reprise:{replay}:queues"  // hash: queue → replay what was archived before, Unix ms
	replayStarted = "reprise:{replay}:started" // hash: "<queue>/<key>" → 1: re-opened, not yet back in its queue
)

// replayPage is how many tasks are replayed a second, per queue.
const replayPage = 20

// begin marks a queue: what was archived until now is to be replayed.
func (r *replays) begin(ctx context.Context, queue string) error {
	if err := r.rdb.HSet(ctx, replayQueues, queue, time.Now().UnixMilli()).Err(); err != nil {
		return fmt.Errorf("begin the replay of %s: %w", queue, err)
	}
	return nil
}

// tend replays one page of a queue.
func (r *replays) tend(ctx context.Context, queue string) error {
	if err := r.resume(ctx, queue); err != nil {
		return err
	}
	before, err := r.rdb.HGet(ctx, replayQueues, queue).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for replays: %w", err)
	}
	ms, err := strconv.ParseInt(before, 10, 64)
	if err != nil {
		return fmt.Errorf("read the replay mark of %s: %w", queue, err)
	}
	done := 0
	for _, outcome := range tasks.AccountOutcomes {
		rows, err := r.w.records.Tasks(ctx, store.TaskFilter{
			Queue: queue, Outcome: outcome, Replayable: true, Until: time.UnixMilli(ms), Limit: replayPage - done,
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := r.one(ctx, row); err != nil {
				return err
			}
			done++
		}
		if done >= replayPage {
			return nil // the rest follows at the next tick
		}
	}
	waiting, err := r.under(ctx, queue)
	if err != nil || len(waiting) > 0 {
		return err // looked at again at the next tick
	}
	if done > 0 {
		r.w.log.Info("replayed tasks archived for an account reason", "queue", queue, "tasks", done)
	}
	if err := r.rdb.HDel(ctx, replayQueues, queue).Err(); err != nil {
		return fmt.Errorf("end the replay of %s: %w", queue, err)
	}
	return nil
}

// one re-opens a task and puts it back into its queue. The note in between
// makes the two steps repeatable after a crash.
func (r *replays) one(ctx context.Context, row store.TaskRow) error {
	field := row.Queue + "/" + row.Key
	if err := r.rdb.HSet(ctx, replayStarted, field, 1).Err(); err != nil {
		return fmt.Errorf("note a replay: %w", err)
	}
	if _, err := r.w.records.Reopen(ctx, row.Key, row.Generation); err != nil {
		return err
	}
	return r.requeue(ctx, field)
}

// resume goes on with replays that a crash cut short, and with those whose
// task was not archived yet.
func (r *replays) resume(ctx context.Context, queue string) error {
	started, err := r.under(ctx, queue)
	if err != nil {
		return err
	}
	for _, field := range started {
		if err := r.requeue(ctx, field); err != nil {
			return err
		}
	}
	return nil
}

// under are the notes of a queue's replays under way.
func (r *replays) under(ctx context.Context, queue string) ([]string, error) {
	started, err := r.rdb.HKeys(ctx, replayStarted).Result()
	if err != nil {
		return nil, fmt.Errorf("look for replays under way: %w", err)
	}
	return slices.DeleteFunc(started, func(field string) bool { return !strings.HasPrefix(field, queue+"/") }), nil
}

// requeue runs an archived task again. Of a task that is active the ack that
// archives it may still be to come: its note stays, and it is looked at again.
// Any other is back already, or a person took care of it.
func (r *replays) requeue(ctx context.Context, field string) error {
	queue, key, _ := strings.Cut(field, "/")
	info, err := r.inspector.GetTaskInfo(queue, key)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		if err := r.enqueueAnew(ctx, queue, key); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("look at an archived task: %w", err)
	case info.State == asynq.TaskStateActive:
		return nil
	case info.State == asynq.TaskStateArchived:
		if err := r.inspector.RunTask(queue, key); err != nil && !errors.Is(err, asynq.ErrTaskNotFound) {
			return fmt.Errorf("run an archived task again: %w", err)
		}
	}
	if err := r.rdb.HDel(ctx, replayStarted, field).Err(); err != nil {
		return fmt.Errorf("end a replay: %w", err)
	}
	return nil
}

// enqueueAnew serves a task whose archived hash is gone: asynq keeps at most
// 10,000, for 90 days.
func (r *replays) enqueueAnew(ctx context.Context, queue, key string) error {
	raw, err := r.w.records.Payload(ctx, key)
	if err != nil {
		return err
	}
	path, group, err := tasks.SplitQueue(queue)
	if err != nil {
		return err
	}
	payload, err := tasks.Decode(path.Type(), raw)
	if err != nil {
		return err
	}
	task, err := payload.Task(group)
	if err != nil {
		return err
	}
	_, err = asynq.NewClientFromRedisClient(r.rdb).EnqueueContext(ctx, task)
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("enqueue a replayed task: %w", err)
	}
	return nil
}
