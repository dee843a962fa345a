package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hibiken/asynq"

	"reprise/store"
)

// enqueue puts an unfinished task into the queue. That its id is taken there
// is no failure: it is queued already, or this very call was repeated by
// go-redis after a lost reply. Only an id kept by a task that ended, while the
// store says the work is open, needs mending.
func (in *Intake) enqueue(ctx context.Context, it *Item, st store.TaskStatus) error {
	taken, err := in.add(ctx, it)
	if err != nil || !taken {
		return err
	}
	info, err := in.info(it)
	if err != nil {
		return err
	}
	if info != nil && !ended(info.State) {
		it.Status, it.Units = AlreadyQueued, 0
		return nil
	}
	// Read again: it may have been settled between Register and now.
	now, err := in.opts.Store.TaskStatus(ctx, it.Payload.Key)
	if err != nil {
		return err
	}
	switch {
	case now.Finished && now.Generation >= st.Generation && !it.reopen:
		in.judge(it, now, false)
		return nil
	case info == nil, now.Generation > 0, it.reopen:
		// The id is free by now, or a re-opening (force, replay) ended halfway.
		return in.replace(ctx, it)
	case info.State == asynq.TaskStateArchived:
		return refusal(fmt.Sprintf("is in the queue's archive (%s): run it from there, or pay again with --force", reasonOr(info.LastErr)))
	}
	return refusal("was finished by the queue, but this store has no result of it: if REPRISE_STORE_URL is the workers' store, pay again with --force")
}

// reopen raises the generation of a settled task and queues it. Each step may
// be repeated after a crash.
func (in *Intake) reopen(ctx context.Context, it *Item, st store.TaskStatus) error {
	it.reopen = true
	if err := in.notRunning(it, st); err != nil {
		return err
	}
	if _, err := in.opts.Store.Reopen(ctx, it.Payload.Key, st.Generation); err != nil {
		return err
	}
	return in.replace(ctx, it)
}

// notRunning refuses a task that runs now, from its own queue or from that of
// the group that had it first.
func (in *Intake) notRunning(it *Item, st store.TaskStatus) error {
	for _, queue := range slices.Compact([]string{it.queue(), cmp.Or(st.Queue, it.queue())}) {
		info, err := in.infoIn(queue, it.Payload.Key)
		if err != nil {
			return err
		}
		if info != nil && info.State == asynq.TaskStateActive {
			return errRunning
		}
	}
	return nil
}

const errRunning = refusal("is running right now: force it again when it has ended")

// replace takes the kept task away from the queue and enqueues a new one.
func (in *Intake) replace(ctx context.Context, it *Item) error {
	queue, key := it.queue(), it.Payload.Key
	err := in.inspector.DeleteTask(queue, key)
	if err != nil && !errors.Is(err, asynq.ErrTaskNotFound) && !errors.Is(err, asynq.ErrQueueNotFound) {
		if info, infoErr := in.info(it); infoErr == nil && info != nil && info.State == asynq.TaskStateActive {
			return errRunning
		}
		return fmt.Errorf("take the finished task out of the queue: %w", err)
	}
	taken, err := in.add(ctx, it)
	if err != nil {
		return err
	}
	if taken { // somebody else was faster, or our own reply was lost
		it.Status, it.Units = AlreadyQueued, 0
	}
	return nil
}

// add enqueues; taken says that the id was there already.
func (in *Intake) add(ctx context.Context, it *Item) (taken bool, err error) {
	task, err := it.Payload.Task(it.group)
	if err != nil {
		return false, err
	}
	_, err = in.client.EnqueueContext(ctx, task)
	switch {
	case errors.Is(err, asynq.ErrTaskIDConflict):
		return true, nil
	case err != nil:
		return false, err
	}
	it.Status = Queued
	return false, nil
}

// info is the queue's task of an item, nil if there is none.
func (in *Intake) info(it *Item) (*asynq.TaskInfo, error) {
	return in.infoIn(it.queue(), it.Payload.Key)
}

// infoIn is a queue's task of a key, nil if there is none.
func (in *Intake) infoIn(queue, key string) (*asynq.TaskInfo, error) {
	info, err := in.inspector.GetTaskInfo(queue, key)
	if errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("look for the task in the queue: %w", err)
	}
	return info, nil
}

func ended(s asynq.TaskState) bool {
	return s == asynq.TaskStateCompleted || s == asynq.TaskStateArchived
}

func reasonOr(lastErr string) string {
	if lastErr == "" {
		return "without a reason"
	}
	return lastErr
}
