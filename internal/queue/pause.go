package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"reprise/admission"
)

// A queue is paused while its set of reasons is not empty; asynq's flag follows the set. A flag that was set or cleared
// elsewhere, as on asynq's web page, changes the set instead: an operator did it.

// A queue's reasons may be changed by every worker at the same moment; one wins, the others try again.
const (
	raceTries = 50
	racePace  = 20 * time.Millisecond
)

// sameEnd is how far the ends of an automatic reason may differ without being written again.
const sameEnd = time.Second

// PauseState reads why a queue is paused.
func (c *Client) PauseState(ctx context.Context, queue string) (admission.PauseState, error) {
	return c.pauses.State(ctx, queue)
}

// AddReason pauses a queue for a reason. changed is false when it was paused for it already, or when an operator keeps
// automatic reasons out. The state is the one after it, with asynq's flag in line.
func (c *Client) AddReason(ctx context.Context, queue string, reason admission.PauseReason) (state admission.PauseState, changed bool, err error) {
	return c.change(ctx, queue, func(before admission.PauseState) (bool, error) {
		if known(before, reason) {
			return false, nil
		}
		_, changed, err := c.pauses.Add(ctx, queue, reason)
		return changed, err
	})
}

// RemoveReason takes reasons away: one by its name, the automatic ones by admission.AutoReason+"*", or all by "*". The
// queue runs again when none is left.
func (c *Client) RemoveReason(ctx context.Context, queue, pattern string) (state admission.PauseState, changed bool, err error) {
	return c.change(ctx, queue, func(admission.PauseState) (bool, error) {
		_, changed, err := c.pauses.Remove(ctx, queue, pattern)
		return changed, err
	})
}

// known reports whether an automatic reason is in the set and ends at about the same time.
func known(state admission.PauseState, reason admission.PauseReason) bool {
	for _, r := range state.Reasons {
		if r.Name == reason.Name {
			return strings.HasPrefix(r.Name, admission.AutoReason) && r.Until.Sub(reason.Until).Abs() < sameEnd
		}
	}
	return false
}

// change reconciles before and after a change: what was done elsewhere comes first, else the change would hide it.
func (c *Client) change(ctx context.Context, queue string, do func(admission.PauseState) (bool, error)) (admission.PauseState, bool, error) {
	state, _, err := c.Reconcile(ctx, queue)
	if err != nil {
		return state, false, err
	}
	changed, err := do(state)
	if err != nil || !changed {
		return state, false, err
	}
	state, _, err = c.Reconcile(ctx, queue)
	return state, true, err
}

// Reconcile brings asynq's flag and the reasons of a queue in line, and says what had to be done first: ActionNone,
// ActionAdopt or ActionDrop after a change elsewhere, else ActionPause or ActionUnpause. Two round trips when they agree
// already.
func (c *Client) Reconcile(ctx context.Context, queue string) (admission.PauseState, admission.Action, error) {
	first := admission.ActionNone
	for range raceTries {
		state, action, err := c.step(ctx, queue)
		switch {
		case errors.Is(err, admission.ErrRaced):
			if err := wait(ctx, racePace); err != nil {
				return state, first, err
			}
		case err != nil:
			return state, first, err
		case action == admission.ActionNone:
			return state, first, nil
		case first == admission.ActionNone:
			first = action
		}
	}
	return admission.PauseState{}, first, fmt.Errorf("reconcile queue %s: %w", queue, admission.ErrRaced)
}

// step does the next thing that brings flag and reasons in line.
func (c *Client) step(ctx context.Context, queue string) (admission.PauseState, admission.Action, error) {
	state, err := c.pauses.State(ctx, queue)
	if err != nil {
		return state, admission.ActionNone, err
	}
	flag, err := c.Paused(ctx, queue) // read after the reasons, as admission.Reconcile asks for
	if err != nil {
		return state, admission.ActionNone, err
	}
	action := admission.Reconcile(state, flag)
	return state, action, c.pauses.Apply(ctx, queue, state, action, flagSetter{c, ctx})
}

// flagSetter sets asynq's flag. A flag that is as wanted already is no error: another worker was faster.
type flagSetter struct {
	c   *Client
	ctx context.Context //nolint:containedctx // lives for one call; asynq's methods take none
}

func (f flagSetter) PauseQueue(queue string) error {
	return f.unless(queue, true, f.c.inspector.PauseQueue(queue))
}

func (f flagSetter) UnpauseQueue(queue string) error {
	return f.unless(queue, false, f.c.inspector.UnpauseQueue(queue))
}

func (f flagSetter) unless(queue string, wanted bool, err error) error {
	if err == nil {
		return nil
	}
	if flag, readErr := f.c.Paused(f.ctx, queue); readErr == nil && flag == wanted {
		return nil
	}
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
