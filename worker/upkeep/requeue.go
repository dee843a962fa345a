package upkeep

import (
	"context"
	"errors"

	"reprise/internal/queue"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker/record"
)

// Store is SQL as the jobs use it; *store.Store implements it.
type Store interface {
	record.Store
	Tasks(ctx context.Context, f store.TaskFilter) ([]store.TaskStatus, error)
	Payload(ctx context.Context, key string) ([]byte, error)
	Reopen(ctx context.Context, key string, from int64) (generation int64, err error)
	Spent(ctx context.Context, f store.CallFilter) (int64, error)
}

// requeue makes asynq run a task that is unfinished in the store, with the payload registered last. A task that
// the queue keeps as ended is replaced. asynq may also have dropped it: it keeps at most 10,000 archived tasks,
// for 90 days.
//
// requeue returns the state in which the queue had the task. A task that waits or is active stays as it is.
// Call requeue again for an active one, because the ack that ends it in the queue may still come, and after an
// error.
func requeue(ctx context.Context, queues *queue.Client, records Store, name, key string) (queue.State, error) {
	task, err := queues.Task(ctx, name, key)
	if err != nil && !errors.Is(err, queue.ErrNotFound) {
		return task.State, err
	}
	if task.State == queue.Active || task.State.Waits() {
		return task.State, nil
	}
	raw, err := records.Payload(ctx, key)
	if err != nil {
		return task.State, err
	}
	payload, group, err := tasks.DecodeQueued(name, raw)
	if err != nil {
		return task.State, err
	}
	_, err = queues.Replace(ctx, payload, group)
	if errors.Is(err, queue.ErrActive) {
		return queue.Active, nil
	}
	return task.State, err
}
