package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"reprise/internal/queue"
	"reprise/store"
)

const errRunning = refusal("is running now: use --force when it has finished")

// enqueue puts an unfinished task into its queue. If the queue has the id already, the task is queued, or go-redis has
// repeated this call after a lost reply, or the task has ended in the queue but not in the store.
func (in *Intake) enqueue(ctx context.Context, it *Item, st store.TaskStatus) error {
	added, err := in.queues.Enqueue(ctx, it.Payload, it.group)
	if err != nil {
		return err
	}
	if added {
		it.Status = Queued
		return nil
	}
	queued, err := in.find(ctx, it.queue(), it.Payload.Key)
	if err != nil {
		return err
	}
	if queued.State != queue.NotQueued && !queued.State.Ended() {
		it.Status, it.Units = AlreadyQueued, 0
		return nil
	}
	// The task may have been settled since it was registered.
	now, err := in.opts.Store.TaskStatus(ctx, it.Payload.Key)
	if err != nil {
		return err
	}
	switch {
	case now.Finished && now.Generation >= st.Generation && !it.reopen:
		in.decideSettled(it, now, false)
		return nil
	case queued.State == queue.NotQueued, now.Generation > 0, it.reopen:
		// The id has become free, or a crash interrupted a force or replay.
		return in.replace(ctx, it)
	case queued.State == queue.Archived:
		return refusal(fmt.Sprintf("is archived in asynq (%s) without a result in the store; use --force to run it again, which is billed again",
			cmp.Or(queued.LastError, "no reason given")))
	}
	return refusal("is completed in the queue, but this store has no result for it: check that REPRISE_STORE_URL is the workers' store, or call AudD again with --force, which is billed again")
}

// reopen raises the generation of a settled task and queues it. It can be repeated after a crash.
func (in *Intake) reopen(ctx context.Context, it *Item, st store.TaskStatus) error {
	it.reopen = true
	if err := in.notRunning(ctx, it, st); err != nil {
		return err
	}
	if _, err := in.opts.Store.Reopen(ctx, it.Payload.Key, st.Generation); err != nil {
		return err
	}
	return in.replace(ctx, it)
}

// notRunning refuses a task that is running in its queue or in the queue of its first submission.
func (in *Intake) notRunning(ctx context.Context, it *Item, st store.TaskStatus) error {
	for _, name := range slices.Compact([]string{it.queue(), cmp.Or(st.Queue, it.queue())}) {
		task, err := in.find(ctx, name, it.Payload.Key)
		if err != nil {
			return err
		}
		if task.State == queue.Active {
			return errRunning
		}
	}
	return nil
}

// replace deletes the ended task that the queue keeps and enqueues a new one.
func (in *Intake) replace(ctx context.Context, it *Item) error {
	added, err := in.queues.Replace(ctx, it.Payload, it.group)
	switch {
	case errors.Is(err, queue.ErrActive):
		return errRunning
	case err != nil:
		return fmt.Errorf("replace the finished task: %w", err)
	case added:
		it.Status = Queued
	default: // another process was faster, or the reply was lost
		it.Status, it.Units = AlreadyQueued, 0
	}
	return nil
}

// find reads a task from a queue; its state is NotQueued if it is not there.
func (in *Intake) find(ctx context.Context, name, key string) (queue.Task, error) {
	task, err := in.queues.Task(ctx, name, key)
	if errors.Is(err, queue.ErrNotFound) {
		return queue.Task{}, nil
	}
	return task, err
}
