package ops

import (
	"context"
	"slices"
	"strings"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/tasks"
)

// QueueChange is a queue after it was paused or resumed.
type QueueChange struct {
	Queue   string        `json:"queue"`
	Changed bool          `json:"changed"`
	Paused  bool          `json:"paused"`
	Why     string        `json:"why"` // the reasons in one phrase
	Reasons []PauseReason `json:"reasons"`
}

// PauseRequest selects the queues to pause or resume.
type PauseRequest struct {
	// Targets are queues or paths. A path stands for its own queue and the queues of its groups.
	Targets []string
	// Only makes a path stand for its own queue alone.
	Only    bool
	By, Why string
}

// Pause stops workers from taking tasks of queues until Resume. Running calls finish.
func (q *Queues) Pause(ctx context.Context, r PauseRequest) ([]QueueChange, error) {
	reason := admission.PauseReason{Name: admission.ReasonManual, By: r.By, Evidence: r.Why}
	return q.change(ctx, r, func(queue string) (admission.PauseState, bool, error) { return q.queue.AddReason(ctx, queue, reason) })
}

// Resume ends an operator's pause. Automatic reasons stay until their cause ends.
func (q *Queues) Resume(ctx context.Context, r PauseRequest) ([]QueueChange, error) {
	return q.change(ctx, r, func(queue string) (admission.PauseState, bool, error) {
		return q.queue.RemoveReason(ctx, queue, admission.ReasonManual)
	})
}

func (q *Queues) change(ctx context.Context, r PauseRequest, do func(queue string) (admission.PauseState, bool, error)) ([]QueueChange, error) {
	v, err := q.survey(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := expandQueues(r.Targets, r.Only, v.queues)
	if err != nil {
		return nil, err
	}
	out := []QueueChange{}
	for _, queue := range queues {
		state, changed, err := do(queue)
		if err != nil {
			return out, err
		}
		state = withKnownEnds(state, serving(v.state, queue))
		out = append(out, QueueChange{queue, changed, state.Paused(), pauseText(state, state.Paused(), q.times()), reasonsOf(state)})
	}
	return out, nil
}

// expandQueues returns the queues that the arguments stand for, in their order and each once.
func expandQueues(args []string, only bool, all []string) ([]string, error) {
	var out []string
	add := func(q string) {
		if !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	for _, arg := range args {
		if strings.Contains(arg, "/") {
			return nil, invalid("%s is a source and path: stop it with `inspect halt %s`", ShownName(arg), ShownName(arg))
		}
		path, group, err := tasks.SplitQueue(arg)
		if err != nil {
			return nil, invalid("%w%s", err, text.DidYouMean(arg, all))
		}
		if group != "" && !slices.Contains(all, arg) {
			return nil, invalid("no queue %s%s (inspect queues lists them)", ShownName(arg), text.DidYouMean(arg, all))
		}
		if group != "" || only {
			add(arg)
			continue
		}
		for _, q := range all {
			if serves(path, q) {
				add(q)
			}
		}
	}
	return out, nil
}
