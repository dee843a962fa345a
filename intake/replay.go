package intake

import (
	"context"
	"errors"
	"fmt"

	"reprise/store"
	"reprise/tasks"
)

// ErrNotReplayable means that a task cannot be run again: it is done, held, has failed permanently, or is not
// finished.
var ErrNotReplayable = errors.New("nothing to replay")

// Replay runs an archived task again, in its queue and with the payload registered last: it raises the generation,
// deletes the task that the queue keeps, and enqueues it. It returns Queued, or AlreadyQueued for a task that the
// queue has already. It can be repeated after a crash. Its errors are ErrNotReplayable, store.ErrUnknownKey, a
// refusal in one sentence, or a failure of Redis or the store.
func (in *Intake) Replay(ctx context.Context, key string) (Status, error) {
	return in.replay(ctx, key, tasks.Archive)
}

// Release is Replay for a held upload that an operator has resolved. Its next delivery settles or sends it, as the
// ledger says.
func (in *Intake) Release(ctx context.Context, key string) (Status, error) {
	return in.replay(ctx, key, tasks.Hold)
}

// replay runs a task again that was finished with the given verdict.
func (in *Intake) replay(ctx context.Context, key string, verdict tasks.Verdict) (Status, error) {
	st, it, err := in.replayable(ctx, key, verdict)
	switch {
	case err != nil:
	case st.Finished:
		err = in.reopen(ctx, it, st)
	default: // a crash interrupted an earlier replay
		err = in.enqueue(ctx, it, st)
	}
	if err != nil {
		return Failed, fmt.Errorf("replay: %w", err)
	}
	return it.Status, nil
}

// Replayable returns why a task cannot be run again, and what to do instead; nil if it can. The task must have been
// finished with the given verdict, or an earlier replay of it was interrupted. The error is ErrNotReplayable.
func Replayable(st store.TaskStatus, verdict tasks.Verdict) error {
	switch {
	case !st.Finished && st.Generation == 0:
		return fmt.Errorf("%w: it waits for its first run (see inspect why)", ErrNotReplayable)
	case !st.Finished || st.Verdict == verdict && !st.Final:
		return nil
	case st.Final:
		return fmt.Errorf("%w: it failed permanently; enqueue its input with --force to pay for it again", ErrNotReplayable)
	case st.Verdict == tasks.Hold:
		return fmt.Errorf("%w: it is held until an operator decides: inspect uploads resolve", ErrNotReplayable)
	}
	return fmt.Errorf("%w: it is %s; enqueue its input with --force to pay for it again", ErrNotReplayable, st.Verdict)
}

func (in *Intake) replayable(ctx context.Context, key string, verdict tasks.Verdict) (store.TaskStatus, *Item, error) {
	st, err := in.opts.Store.TaskStatus(ctx, key)
	switch {
	case err != nil:
		return st, nil, err
	case !st.Known:
		return st, nil, store.ErrUnknownKey
	}
	if err := Replayable(st, verdict); err != nil {
		return st, nil, err
	}
	raw, err := in.opts.Store.Payload(ctx, key)
	if err != nil {
		return st, nil, err
	}
	payload, group, err := tasks.DecodeQueued(st.Queue, raw)
	if err != nil {
		return st, nil, fmt.Errorf("decode its payload: %w", err)
	}
	return st, &Item{Payload: payload, group: group, reopen: true}, nil
}
