package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/tasks"
)

// Sources reports on the accounts, and halts and resumes them.
type Sources struct{ *base }

// Source is an account on one path. Its times are null in JSON where those of SourceState are zero.
type Source struct {
	admission.SourceState
	State          string     `json:"state"`         // one phrase: ok, or what blocks calls and until when
	BlockedBy      string     `json:"blocked_by"`    // halt, throttle, breaker; "" = not blocked
	BlockedUntil   *time.Time `json:"blocked_until"` // null = not blocked, or until an operator resumes it
	Halt           string     `json:"halt"`
	LatencyMS      int64      `json:"latency_ms"` // 0 = no call yet
	LastSuccess    *time.Time `json:"last_success"`
	ThrottledUntil *time.Time `json:"throttled_until"`
	BreakerUntil   *time.Time `json:"breaker_until"`
}

// SourcesReport is all accounts, groups and shared budgets at one moment of Redis's clock.
type SourcesReport struct {
	admission.State
	Sources []Source `json:"sources"`
}

// List returns all accounts.
func (s *Sources) List(ctx context.Context) (SourcesReport, error) {
	g, err := s.gates(ctx)
	if err != nil {
		return SourcesReport{}, err
	}
	state, err := g.State(ctx)
	if err != nil {
		return SourcesReport{}, err
	}
	t := text.Times{Zone: s.Zone, Now: state.Now}
	return SourcesReport{state, mapped(state.Sources, func(st admission.SourceState) Source { return sourceOf(st, t) })}, nil
}

func sourceOf(st admission.SourceState, t text.Times) Source {
	gate, until := st.Blocked(t.Now)
	return Source{
		SourceState: st, State: sourceState(st, t), BlockedBy: string(gate), BlockedUntil: stamp(until), Halt: text.Printable(st.Halt),
		LatencyMS: st.Latency.Milliseconds(), LastSuccess: stamp(st.LastSuccess), ThrottledUntil: stamp(st.ThrottledUntil),
		BreakerUntil: stamp(st.BreakerUntil),
	}
}

// sourceState returns in one phrase whether calls may go to a source.
func sourceState(st admission.SourceState, t text.Times) string {
	gate, until := st.Blocked(t.Now)
	switch gate {
	case admission.GateHalt:
		return haltText(st, t) + ", probe " + probeText(st, t)
	case admission.GateThrottle:
		return "throttled until " + t.Until(until)
	case admission.GateBreaker:
		return "breaker open, probe " + t.Until(until)
	default: // nothing else blocks a whole source
	}
	if st.LastRefusedToken != "" {
		return "ok for tokens other than " + text.Short(st.LastRefusedToken, 9)
	}
	return "ok"
}

// haltText returns why a source is halted, by whom and since when.
func haltText(st admission.SourceState, t text.Times) string {
	by := text.Printable(cmp.Or(st.HaltBy, "unknown"))
	return fmt.Sprintf("HALTED %s by %s since %s", text.Printable(st.Halt), by, t.At(st.HaltSince))
}

// manualHalt precedes the text of an operator's halt, which may be the name of an outcome.
const manualHalt = "manual: "

// haltStep returns what an operator does about a halted source.
func haltStep(st admission.SourceState) string {
	resume := "inspect resume " + targetOf(st).String()
	switch tasks.Outcome(st.Halt) {
	case tasks.Authentication:
		return "fix the token, then " + resume
	case tasks.Quota:
		return "raise the account's quota, then " + resume
	case tasks.Subscription:
		return "renew the subscription, then " + resume
	case tasks.Blocked:
		return "ask AudD what blocks the account, then " + resume
	default: // an operator's halt, or a wrong base URL
		return resume
	}
}

func probeText(st admission.SourceState, t text.Times) string {
	if st.ProbeAt.IsZero() {
		return "on resume"
	}
	return t.Until(st.ProbeAt)
}

// serving returns the sources that may serve a queue.
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
