package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/hibiken/asynq"

	"reprise/tasks"
)

// Enqueue puts a task into the queue of its path and group. added is false if the queue has a task with this key already.
//
// A Client registers the name of a queue with the first task that it enqueues there. If an operator deletes the queue
// later, only a new Client registers the name again.
func (c *Client) Enqueue(ctx context.Context, p tasks.Payload, group string) (added bool, err error) {
	task, err := p.Task(group)
	if err != nil {
		return false, err
	}
	_, err = c.client.EnqueueContext(ctx, task)
	switch {
	case errors.Is(err, asynq.ErrTaskIDConflict):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("enqueue a task: %w", err)
	}
	return true, nil
}

// Replace deletes the task that the queue keeps under the key, in whatever state, and enqueues a new one. The error wraps
// ErrActive if a worker runs the task. added is false if another process enqueued the key meanwhile. Repeat a Replace that
// a crash interrupted: the queue may have lost the old task without getting the new one.
func (c *Client) Replace(ctx context.Context, p tasks.Payload, group string) (added bool, err error) {
	if err := c.Delete(ctx, p.Path.Queue(group), p.Key); err != nil {
		return false, err
	}
	return c.Enqueue(ctx, p, group)
}
