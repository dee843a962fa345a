package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"reprise/internal/queue/asynqkey"
)

// State is the state of a task in its queue, in asynq's words.
type State string

// The closed set of states. Reprise does not use asynq's aggregation.
const (
	Pending   State = "pending"   // a worker takes it as soon as it has a free slot
	Active    State = "active"    // a worker runs it
	Scheduled State = "scheduled" // due later, not run yet
	Retry     State = "retry"     // due later, run before
	Archived  State = "archived"  // failed for good
	Completed State = "completed" // succeeded, and kept for its retention
	NotQueued State = ""          // the queue does not have it
)

// Waits reports whether the task will run without a user's action.
func (s State) Waits() bool { return s == Pending || s == Scheduled || s == Retry }

// Ended reports whether the queue keeps the task but does not run it again.
func (s State) Ended() bool { return s == Archived || s == Completed }

// ErrNotFound means that the queue does not have the task.
var ErrNotFound = errors.New("the queue does not have this task")

// ErrActive means that a worker is running the task.
var ErrActive = errors.New("the task is running")

// Task is a task as asynq stores it.
type Task struct {
	Queue, ID string
	State     State
	NextRun   time.Time // of a scheduled task or a retry; else zero
	LastError string    // empty = it never failed, or it was read by Tasks
}

// Task returns one task. It fails with ErrNotFound if the queue does not have it.
func (c *Client) Task(ctx context.Context, queue, id string) (Task, error) {
	var t Task
	err := inspect(ctx, "read a task", queue, func() error {
		info, err := c.inspector.GetTaskInfo(queue, id)
		if err == nil {
			t = Task{Queue: queue, ID: id, State: State(info.State.String()), LastError: info.LastErr}
			if t.State == Scheduled || t.State == Retry {
				t.NextRun = info.NextProcessAt
			}
		}
		return err
	})
	return t, err
}

// Delete removes a task, if the queue has it. It fails with ErrActive while a worker runs it.
func (c *Client) Delete(ctx context.Context, queue, id string) error {
	err := inspect(ctx, "delete a task", queue, func() error { return c.inspector.DeleteTask(queue, id) })
	if err == nil || errors.Is(err, ErrNotFound) {
		return nil
	}
	if t, readErr := c.Task(ctx, queue, id); readErr == nil && t.State == Active {
		return fmt.Errorf("delete a task of queue %s: %w", queue, ErrActive)
	}
	return err
}

// inspect calls asynq's Inspector, whose methods take no context. It does not call it after ctx has ended.
func inspect(ctx context.Context, doing, queue string, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := call()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		err = ErrNotFound
	}
	return fmt.Errorf("%s of queue %s: %w", doing, queue, err)
}

// Line is the position of a task among the pending ones.
type Line struct {
	Since time.Time // pending since; zero = asynq did not record it
	Ahead int64     // pending tasks that run before it; -1 = it is not pending
}

// Line returns the position of a task. Its cost rises with the number of pending tasks.
func (c *Client) Line(ctx context.Context, queue, id string) (Line, error) {
	var since *redis.StringCmd
	var at, total *redis.IntCmd
	_, err := c.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		since = p.HGet(ctx, asynqkey.Task(queue, id), "pending_since")
		list := asynqkey.Of(queue, asynqkey.Pending)
		at = p.LPos(ctx, list, id, redis.LPosArgs{Rank: -1}) // asynq pushes left and takes from the right
		total = p.LLen(ctx, list)
		return nil
	})
	if err != nil && !absent(err) {
		return Line{}, fmt.Errorf("read the place of a task in queue %s: %w", queue, err)
	}
	line := Line{Since: nanos(since.Val()), Ahead: -1}
	if at.Err() == nil {
		line.Ahead = max(0, total.Val()-1-at.Val())
	}
	return line, nil
}

// Ref names a task in a queue.
type Ref struct{ Queue, ID string }

// Tasks returns one task per ref, in the same order, in one round trip. A task that is not in its queue is NotQueued.
func (c *Client) Tasks(ctx context.Context, refs []Ref) ([]Task, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	states := make([]*redis.StringCmd, len(refs))
	due := make([][2]*redis.FloatCmd, len(refs))
	_, err := c.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, r := range refs {
			states[i] = p.HGet(ctx, asynqkey.Task(r.Queue, r.ID), "state")
			due[i][0] = p.ZScore(ctx, asynqkey.Of(r.Queue, asynqkey.Retry), r.ID)
			due[i][1] = p.ZScore(ctx, asynqkey.Of(r.Queue, asynqkey.Scheduled), r.ID)
		}
		return nil
	})
	if err != nil && !absent(err) {
		return nil, fmt.Errorf("find tasks in their queues: %w", err)
	}
	out := make([]Task, len(refs))
	for i, r := range refs {
		out[i] = Task{Queue: r.Queue, ID: r.ID, State: State(states[i].Val())}
		if at := max(due[i][0].Val(), due[i][1].Val()); at > 0 {
			out[i].NextRun = time.Unix(int64(at), 0)
		}
	}
	return out, nil
}
