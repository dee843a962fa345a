package ops

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/internal/text"
)

// PauseReason says why a queue is paused. The queue runs again when no reason is left.
type PauseReason struct {
	Name     string     `json:"name"` // manual, or auto: and the gate
	Since    *time.Time `json:"since"`
	Until    *time.Time `json:"until"` // null = it does not end by itself
	By       string     `json:"by"`
	Evidence string     `json:"evidence"`
}

func reasonsOf(state admission.PauseState) []PauseReason {
	return mapped(state.Reasons, func(r admission.PauseReason) PauseReason {
		return PauseReason{r.Name, stamp(r.At), stamp(r.Until), text.Printable(r.By), text.Printable(r.Evidence)}
	})
}

// pauseText returns in one phrase why a queue is paused. flag is asynq's pause flag.
func pauseText(state admission.PauseState, flag bool, t text.Times) string {
	var parts []string
	for _, r := range state.Reasons {
		part := r.Name
		if r.By != "" {
			part += " by " + text.Printable(r.By)
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
		return "set outside Reprise; a worker will record it as a manual pause"
	}
	return strings.Join(parts, "; ")
}

// autoHalt is the pause reason of a queue whose sources are all halted.
const autoHalt = admission.AutoReason + string(admission.GateHalt)

// withKnownEnds removes the end of a halt reason if only an operator ends the halts. Workers give every automatic
// reason an end, such as a day ahead, and renew it.
func withKnownEnds(state admission.PauseState, sources []admission.SourceState) admission.PauseState {
	opens := func(st admission.SourceState) bool { return st.Halt == "" || !st.ProbeAt.IsZero() }
	if !state.Has(autoHalt) || len(sources) == 0 || slices.ContainsFunc(sources, opens) {
		return state
	}
	names := mapped(sources, func(st admission.SourceState) string { return targetOf(st).String() })
	state.Reasons = slices.Clone(state.Reasons)
	for i, r := range state.Reasons {
		if r.Name == autoHalt {
			state.Reasons[i].Until = time.Time{}
			state.Reasons[i].Evidence = "until an operator resumes " + strings.Join(names, " or ")
		}
	}
	return state
}

// pauseEnds returns when the last reason ends. It returns zero if a reason does not end by itself.
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

// reasonNames returns the names of the reasons.
func reasonNames(state admission.PauseState) string {
	names := mapped(state.Reasons, func(r admission.PauseReason) string { return r.Name })
	return cmp.Or(strings.Join(names, ", "), "outside Reprise")
}
