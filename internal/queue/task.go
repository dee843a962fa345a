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

// State is where asynq has a task.
type State string

// The closed set of states. asynq's aggregating is not used here.
const (
	Pending   State = "pending"   // in line for a worker
	Active    State = "active"    // a worker runs it
	Scheduled State = "scheduled" // due later, first run
	Retry     State = "retry"     // due later, ran before
	Archived  State = "archived"  // given up
	Completed State = "completed" // done, kept for a while
	NotQueued State = ""          // the queue does not have it
)

// Waits reports whether the task will run without anybody doing anything.
func (s State) Waits() bool { return s == Pending || s == Scheduled || s == Retry }

// Ended reports whether asynq keeps the task but will not run it again.
func (s State) Ended() bool { return s == Archived || s == Completed }

// ErrNotFound means that the queue does not have the task.
var ErrNotFound = errors.New("the queue does not have this task")

// ErrActive means that a worker runs the task right now.
var ErrActive = errors.New("the task is running")

// Task is a task as asynq has it.
type Task struct {
	Queue, ID string
	State     State
	LastError string    // "" = it never failed
	NextRun   time.Time // of a scheduled task or a retry; else zero
}

// Task reads one task; ErrNotFound if the queue does not have it.
func (c *Client) Task(ctx context.Context, queue, id string) (Task, error) {
	if err := ctx.Err(); err != nil { // the Inspector takes no context
		return Task{}, err
	}
	info, err := c.inspector.GetTaskInfo(queue, id)
	if err != nil {
		return Task{}, failed("read a task", queue, err)
	}
	t := Task{Queue: queue, ID: id, State: State(info.State.String()), LastError: info.LastErr}
	if t.State == Scheduled || t.State == Retry {
		t.NextRun = info.NextProcessAt
	}
	return t, nil
}

// Run makes an archived, scheduled or retrying task pending. ErrNotFound if the queue does not have it.
func (c *Client) Run(ctx context.Context, queue, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return failed("run a task", queue, c.inspector.RunTask(queue, id))
}

// Delete removes a task; one that the queue does not have is no error. ErrActive if a worker runs it.
func (c *Client) Delete(ctx context.Context, queue, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := failed("delete a task", queue, c.inspector.DeleteTask(queue, id))
	if err == nil || errors.Is(err, ErrNotFound) {
		return nil
	}
	if t, readErr := c.Task(ctx, queue, id); readErr == nil && t.State == Active {
		return fmt.Errorf("delete a task of queue %s: %w", queue, ErrActive)
	}
	return err
}

func failed(doing, queue string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		err = ErrNotFound
	}
	return fmt.Errorf("%s of queue %s: %w", doing, queue, err)
}

// Line is the place of a pending task.
type Line struct {
	Since time.Time // pending since; zero = asynq did not note it
	Ahead int64     // tasks that run before it; -1 = it is not pending
}

// Line reads the place of a task among the pending ones. Its cost rises with their number.
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
	if err != nil && !none(err) {
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

// Place is the state of a task, and when it is due.
type Place struct {
	State State
	Due   time.Time // of a scheduled task or a retry; else zero
}

// Places finds many tasks in one round trip, in the order of refs. NotQueued is an answer.
func (c *Client) Places(ctx context.Context, refs []Ref) ([]Place, error) {
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
	if err != nil && !none(err) {
		return nil, fmt.Errorf("find tasks in their queues: %w", err)
	}
	out := make([]Place, len(refs))
	for i := range refs {
		out[i].State = State(states[i].Val())
		if at := max(due[i][0].Val(), due[i][1].Val()); at > 0 {
			out[i].Due = time.Unix(int64(at), 0)
		}
	}
	return out, nil
}
