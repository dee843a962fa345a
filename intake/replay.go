package intake

import (
	"context"
	"errors"
	"fmt"

	"reprise/store"
	"reprise/tasks"
)

// ErrNotReplayable means that a task is not one to be run again: it is done,
// a person must decide about it, it failed for good, or it waits already.
var ErrNotReplayable = errors.New("nothing to replay")

// Replay runs an archived task again, in its queue and with the payload that
// was registered last: it raises the generation, takes the kept task out of the
// queue, and enqueues. The answer is Queued, or Waiting for a task that is in
// the queue already and left there. Repeating it after a crash goes on where it
// stopped. An error that is neither ErrNotReplayable nor store.ErrUnknownKey is
// a refusal in a sentence, or Redis or the store failed.
func (in *Intake) Replay(ctx context.Context, key string) (Status, error) {
	return in.replay(ctx, key, tasks.Archive)
}

// Release does the same for a held upload that a person has resolved: its next
// delivery asks the ledger, and settles it or sends it.
func (in *Intake) Release(ctx context.Context, key string) (Status, error) {
	return in.replay(ctx, key, tasks.Hold)
}

// replay runs a finished task again whose verdict is the one expected.
func (in *Intake) replay(ctx context.Context, key string, want tasks.Verdict) (Status, error) {
	st, it, err := in.replayable(ctx, key, want)
	if err != nil {
		return Failed, fmt.Errorf("replay: %w", err)
	}
	if st.Finished {
		err = in.reopen(ctx, it, st)
	} else { // an earlier replay ended halfway
		err = in.enqueue(ctx, it, st)
	}
	if err != nil {
		return Failed, fmt.Errorf("replay: %w", err)
	}
	return it.Status, nil
}

func (in *Intake) replayable(ctx context.Context, key string, want tasks.Verdict) (store.TaskStatus, *Item, error) {
	st, err := in.opts.Store.TaskStatus(ctx, key)
	switch {
	case err != nil:
		return st, nil, err
	case !st.Known:
		return st, nil, store.ErrUnknownKey
	case st.Finished && (st.Verdict != want || st.Final):
		return st, nil, fmt.Errorf("%w: it is %s", ErrNotReplayable, standingWord(st))
	case !st.Finished && st.Generation == 0:
		return st, nil, fmt.Errorf("%w: it waits for its first run", ErrNotReplayable)
	}
	raw, err := in.opts.Store.Payload(ctx, key)
	if err != nil {
		return st, nil, err
	}
	payload, err := tasks.Decode(st.Path.Type(), raw)
	if err != nil {
		return st, nil, fmt.Errorf("read its payload: %w", err)
	}
	_, group, err := tasks.SplitQueue(st.Queue)
	if err != nil {
		return st, nil, err
	}
	return st, &Item{Payload: payload, group: group, reopen: true}, nil
}

func standingWord(st store.TaskStatus) string {
	switch {
	case st.Final:
		return "archived for good"
	case st.Verdict == tasks.Hold:
		return "held until a person decides"
	}
	return string(st.Verdict)
}
