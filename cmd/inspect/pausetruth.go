package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// autoHalt is the reason of a queue all of whose sources are halted.
const autoHalt = admission.AutoReason + string(admission.GateHalt)

// pauseState reads why a queue is paused.
func (s *session) pauseState(ctx context.Context, queue string) (admission.PauseState, error) {
	state, err := s.pauses.State(ctx, queue)
	if err != nil {
		return state, err
	}
	return s.truth(ctx, queue, state)
}

// truth takes the end away from a pause that has none. Workers write one into
// every automatic reason, a day ahead where only a person opens the source, and
// renew it for as long as that lasts.
func (s *session) truth(ctx context.Context, queue string, state admission.PauseState) (admission.PauseState, error) {
	if !state.Has(autoHalt) {
		return state, nil
	}
	if s.seen == nil {
		g, err := s.gates(ctx)
		if err != nil {
			return state, err
		}
		seen, err := g.State(ctx)
		if err != nil {
			return state, err
		}
		s.seen = &seen
	}
	sources := serving(*s.seen, queue)
	if len(sources) == 0 || slices.ContainsFunc(sources, func(st admission.SourceState) bool { return st.Halt == "" || !st.ProbeAt.IsZero() }) {
		return state, nil
	}
	var names []string
	for _, st := range sources {
		names = append(names, st.Source+"/"+string(st.Path))
	}
	state.Reasons = slices.Clone(state.Reasons)
	for i, r := range state.Reasons {
		if r.Name == autoHalt {
			state.Reasons[i].Until = time.Time{}
			state.Reasons[i].Evidence = "until a person resumes " + strings.Join(names, " or ")
		}
	}
	return state, nil
}

// serving are the sources that may serve a queue.
func serving(state admission.State, queue string) []admission.SourceState {
	path, group, err := tasks.SplitQueue(queue)
	if err != nil {
		return nil
	}
	pinned := ""
	for _, g := range state.Groups {
		if group != "" && g.Name == group {
			pinned = g.Source
		}
	}
	return slices.DeleteFunc(slices.Clone(state.Sources), func(st admission.SourceState) bool {
		return st.Path != path || pinned != "" && st.Source != pinned
	})
}

func reasonNames(state admission.PauseState) []string {
	out := make([]string, len(state.Reasons))
	for i, r := range state.Reasons {
		out[i] = r.Name
	}
	return out
}
