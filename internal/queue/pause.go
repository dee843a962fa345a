package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/internal/timer"
)

// Many workers may change a queue's pause reasons at the same moment. One of them succeeds, the others try again.
const (
	raceTries = 50
	racePace  = 20 * time.Millisecond
)

// sameEnd is the difference between two ends of an automatic reason below which the reason is not written again.
const sameEnd = time.Second

// PauseState returns the queue's pause reasons. It does not compare them with asynq's pause flag.
func (c *Client) PauseState(ctx context.Context, queue string) (admission.PauseState, error) {
	return c.pauses.State(ctx, queue)
}

// AddReason pauses a queue. changed is false if the queue has the reason already, or while an operator keeps automatic
// reasons out. asynq's pause flag agrees with the returned state.
func (c *Client) AddReason(ctx context.Context, queue string, reason admission.PauseReason) (state admission.PauseState, changed bool, err error) {
	return c.change(ctx, queue, func(before admission.PauseState) (bool, error) {
		same := func(r admission.PauseReason) bool {
			return r.Name == reason.Name && r.Until.Sub(reason.Until).Abs() < sameEnd
		}
		if strings.HasPrefix(reason.Name, admission.AutoReason) && slices.ContainsFunc(before.Reasons, same) {
			return false, nil
		}
		_, changed, err := c.pauses.Add(ctx, queue, reason)
		return changed, err
	})
}

// RemoveReason removes the reason with this name, all automatic ones (admission.AutoReason+"*"), or all ("*"). The queue
// runs again when no reason is left.
func (c *Client) RemoveReason(ctx context.Context, queue, pattern string) (state admission.PauseState, changed bool, err error) {
	return c.change(ctx, queue, func(admission.PauseState) (bool, error) {
		_, changed, err := c.pauses.Remove(ctx, queue, pattern)
		return changed, err
	})
}

// change reconciles before and after it changes the reasons. Without the first time, the change would hide what an
// operator did to asynq's flag.
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

// Action is one step that makes asynq's pause flag and the pause reasons agree.
type Action string

// The closed set of actions.
const (
	ActionNone    Action = "none"
	ActionPause   Action = "pause"   // set asynq's flag, because the queue has reasons
	ActionUnpause Action = "unpause" // clear asynq's flag, because the queue has no reasons
	ActionAdopt   Action = "adopt"   // an operator set asynq's flag: add a manual reason
	ActionDrop    Action = "drop"    // an operator cleared asynq's flag: remove the reasons
)

// actionFor compares the reasons with asynq's flag. The flag must be read after the reasons. A flag differs from the one
// that was stored last only if somebody else changed it, because our own change is stored before it is made.
func actionFor(s admission.PauseState, flag bool) Action {
	switch {
	case s.Flag == admission.FlagOff && flag:
		return ActionAdopt
	case s.Flag == admission.FlagOn && !flag:
		return ActionDrop
	case s.Paused() && !flag:
		return ActionPause
	case !s.Paused() && flag:
		return ActionUnpause
	}
	return ActionNone
}

// Reconcile makes asynq's pause flag and the queue's pause reasons agree, and returns the first action it took. A change
// of the flag outside Reprise, for example on asynq's web page, changes the reasons (ActionAdopt, ActionDrop). Otherwise
// the reasons decide. Reconcile needs two round trips if they agree already.
func (c *Client) Reconcile(ctx context.Context, queue string) (state admission.PauseState, first Action, err error) {
	first = ActionNone
	for range raceTries {
		var action Action
		state, action, err = c.step(ctx, queue)
		switch {
		case errors.Is(err, admission.ErrRaced):
			if waitErr := timer.Wait(ctx, racePace); waitErr != nil {
				return state, first, waitErr
			}
		case err != nil, action == ActionNone:
			return state, first, err
		case first == ActionNone:
			first = action
		}
	}
	return state, first, err
}

// step reads the reasons and the flag, and takes one action.
func (c *Client) step(ctx context.Context, queue string) (admission.PauseState, Action, error) {
	state, err := c.pauses.State(ctx, queue)
	if err != nil {
		return state, ActionNone, err
	}
	flag, err := c.Paused(ctx, queue)
	if err != nil {
		return state, ActionNone, err
	}
	action := actionFor(state, flag)
	switch action {
	case ActionAdopt:
		err = c.pauses.StoreFlag(ctx, queue, &state, admission.FlagOn, admission.ReasonsAdopt)
	case ActionDrop:
		err = c.pauses.StoreFlag(ctx, queue, &state, admission.FlagOff, admission.ReasonsDrop)
	case ActionPause, ActionUnpause:
		err = c.setFlag(ctx, queue, &state, action == ActionPause)
	case ActionNone: // a crash may have prevented the last confirmation
		if agreed := confirmed(flag); state.Flag != agreed {
			err = c.pauses.StoreFlag(ctx, queue, &state, agreed, admission.ReasonsKeep)
		}
	}
	return state, action, err
}

// setFlag changes asynq's flag. It stores the intent before and the result after.
func (c *Client) setFlag(ctx context.Context, queue string, state *admission.PauseState, on bool) error {
	intent, set := admission.FlagUnpausing, c.inspector.UnpauseQueue
	if on {
		intent, set = admission.FlagPausing, c.inspector.PauseQueue
	}
	if err := c.pauses.StoreFlag(ctx, queue, state, intent, admission.ReasonsKeep); err != nil {
		return err
	}
	if err := set(queue); err != nil {
		if flag, readErr := c.Paused(ctx, queue); readErr != nil || flag != on { // else another worker was faster
			return fmt.Errorf("set the pause flag of queue %s: %w", queue, err)
		}
	}
	return c.pauses.StoreFlag(ctx, queue, state, confirmed(on), admission.ReasonsKeep)
}

// confirmed returns the stored form of a flag that asynq has.
func confirmed(flag bool) admission.PauseFlag {
	if flag {
		return admission.FlagOn
	}
	return admission.FlagOff
}
