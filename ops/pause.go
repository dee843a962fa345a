package ops

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/tasks"
)

// PauseReason is one reason why a queue is paused. The queue runs again when none is left.
type PauseReason struct {
	Name     string     `json:"name"` // manual, or auto: and the gate
	Since    *time.Time `json:"since"`
	Until    *time.Time `json:"until"` // null = it does not end by itself
	By       string     `json:"by"`
	Evidence string     `json:"evidence"`
}

// QueueChange is a queue after it was paused or resumed.
type QueueChange struct {
	Queue   string        `json:"queue"`
	Changed bool          `json:"changed"`
	Paused  bool          `json:"paused"`
	Why     string        `json:"why"` // the reasons in one phrase
	Reasons []PauseReason `json:"reasons"`
}

// PauseRequest names queues to pause or resume.
type PauseRequest struct {
	// Targets are queues, or paths, which stand for their queue and those of their groups.
	Targets []string
	// Only keeps a path to its own queue.
	Only    bool
	By, Why string
}

// Pause stops workers from taking tasks of queues until Resume. Calls under way finish.
func (q *Queues) Pause(ctx context.Context, r PauseRequest) ([]QueueChange, error) {
	reason := admission.PauseReason{Name: admission.ReasonManual, By: r.By, Evidence: r.Why}
	return q.change(ctx, r, func(queue string) (admission.PauseState, bool, error) { return q.queue.AddReason(ctx, queue, reason) })
}

// Resume takes an operator's pause away. Automatic reasons stay until their cause ends.
func (q *Queues) Resume(ctx context.Context, r PauseRequest) ([]QueueChange, error) {
	return q.change(ctx, r, func(queue string) (admission.PauseState, bool, error) {
		return q.queue.RemoveReason(ctx, queue, admission.ReasonManual)
	})
}

func (q *Queues) change(ctx context.Context, r PauseRequest, do func(queue string) (admission.PauseState, bool, error)) ([]QueueChange, error) {
	g, err := q.gates(ctx)
	if err != nil {
		return nil, err
	}
	all, err := q.queues(ctx, g)
	if err != nil {
		return nil, err
	}
	queues, err := expandQueues(r.Targets, r.Only, all)
	if err != nil {
		return nil, err
	}
	sources, err := g.State(ctx)
	if err != nil {
		return nil, err
	}
	out := []QueueChange{}
	for _, queue := range queues {
		state, changed, err := do(queue)
		if err != nil {
			return out, err
		}
		state = withKnownEnds(state, serving(sources, queue))
		out = append(out, QueueChange{queue, changed, state.Paused(), pauseText(state, state.Paused(), q.times()), reasonsOf(state)})
	}
	return out, nil
}

// expandQueues are the queues that the arguments stand for, in their order, each once.
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

func reasonsOf(state admission.PauseState) []PauseReason {
	out := []PauseReason{}
	for _, r := range state.Reasons {
		out = append(out, PauseReason{Name: r.Name, Since: stamp(r.At), Until: stamp(r.Until), By: words(r.By), Evidence: text.Printable(r.Evidence)})
	}
	return out
}

// pauseText says in one phrase why a queue is paused. flag is asynq's.
func pauseText(state admission.PauseState, flag bool, t text.Times) string {
	var parts []string
	for _, r := range state.Reasons {
		part := r.Name
		if r.By != "" {
			part += " by " + words(r.By)
		}
		part += " since " + t.At(r.At)
		if !r.Until.IsZero() {
			part += ", until " + t.Until(r.Until)
		}
		if r.Evidence != "" {
			part += " (" + text.Printable(r.Evidence) + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 && flag {
		return "outside Reprise; a worker records it as manual"
	}
	return strings.Join(parts, "; ")
}

// autoHalt is the reason of a queue all of whose sources are halted.
const autoHalt = admission.AutoReason + string(admission.GateHalt)

// withKnownEnds takes the end away from a pause that has none: workers give every automatic reason an end, a day ahead
// where only an operator resumes the sources, and renew it as long as that lasts.
func withKnownEnds(state admission.PauseState, sources []admission.SourceState) admission.PauseState {
	opens := func(st admission.SourceState) bool { return st.Halt == "" || !st.ProbeAt.IsZero() }
	if !state.Has(autoHalt) || len(sources) == 0 || slices.ContainsFunc(sources, opens) {
		return state
	}
	var names []string
	for _, st := range sources {
		names = append(names, st.Source+"/"+string(st.Path))
	}
	state.Reasons = slices.Clone(state.Reasons)
	for i, r := range state.Reasons {
		if r.Name == autoHalt {
			state.Reasons[i].Until = time.Time{}
			state.Reasons[i].Evidence = "until an operator resumes " + strings.Join(names, " or ")
		}
	}
	return state
}

// pauseEnds is when the last reason ends; zero if one does not end by itself.
func pauseEnds(state admission.PauseState) time.Time {
	var end time.Time
	for _, r := range state.Reasons {
		if r.Until.IsZero() {
			return time.Time{}
		}
		if r.Until.After(end) {
			end = r.Until
		}
	}
	return end
}

// reasonNames lists the reasons by name.
func reasonNames(state admission.PauseState) string {
	var names []string
	for _, r := range state.Reasons {
		names = append(names, r.Name)
	}
	return cmp.Or(strings.Join(names, ", "), "outside Reprise")
}
