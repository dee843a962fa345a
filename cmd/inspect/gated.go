package main

import (
	"fmt"
	"slices"
	"time"

	"reprise/admission"
)

// gated names the gate that keeps a task from its call now; Because is empty
// when none is seen to.
func (s *session) gated(e evidence) cause {
	list := e.usable()
	if len(list) == 0 {
		if e.pinned != "" {
			return cause{Because: fmt.Sprintf("it is pinned to source %s, which no worker has", e.pinned)}
		}
		return cause{}
	}
	if c, shut := s.shut(e, list); shut {
		return c
	}
	if c, full := s.budgetFull(e, list); full {
		return c
	}
	return s.busy(e, list)
}

// shut explains sources that are all closed. It opens with the first of them.
func (s *session) shut(e evidence, list []admission.SourceState) (cause, bool) {
	var c cause
	for _, st := range list {
		gate, until := st.Shut(e.now)
		if gate == "" {
			return cause{}, false
		}
		if c.Because != "" {
			c.Because += "; "
		}
		c.Because += fmt.Sprintf("source %s is %s", st.Source, s.sourceState(st, e.now).text)
		if !until.IsZero() && (c.Starts.IsZero() || until.Before(c.Starts)) {
			c.Starts, c.Guess = until, true
		}
		if gate != admission.GateThrottle {
			c.ToDo = append(c.ToDo, fmt.Sprintf("inspect resume %s/%s", st.Source, st.Path))
		}
	}
	return c, true
}

// budgetFull explains a unit budget that is used up: of everything, of the
// group, or of every source.
func (s *session) budgetFull(e evidence, list []admission.SourceState) (cause, bool) {
	shared := e.snapshot.State.Budgets
	if g := e.groupState(); g != nil {
		shared = slices.Concat(shared, g.Budgets)
	}
	if b, full := used(shared); full {
		return s.budgetCause(b), true
	}
	var first admission.BudgetState
	for i, st := range list {
		b, full := used(st.Budgets)
		if !full {
			return cause{}, false
		}
		if i == 0 || b.End.Before(first.End) {
			first = b
		}
	}
	return s.budgetCause(first), true
}

// used finds a budget that leaves no unit; of several the one that lasts longest.
func used(list []admission.BudgetState) (out admission.BudgetState, full bool) {
	for _, b := range list {
		if b.Spent+b.Reserved >= b.Cap && !b.End.Before(out.End) {
			out, full = b, true
		}
	}
	return out, full
}

func (s *session) budgetCause(b admission.BudgetState) cause {
	limit := "units_per_" + periodName(b)
	return cause{
		Because: fmt.Sprintf("the units of the %s are used up: %s of %s (%s)", periodName(b), thousands(b.Spent+b.Reserved), thousands(b.Cap), budgetOf(b)),
		Starts:  b.End, Guess: true,
		ToDo: []string{fmt.Sprintf("inspect limits set %s.%s=…", budgetOf(b), limit)},
	}
}

// busy explains permits that are all in use: of everything, of the group's
// ceiling, or of every source.
func (s *session) busy(e evidence, list []admission.SourceState) cause {
	all := e.snapshot.State
	if all.Permits > 0 && all.InFlight >= all.Permits {
		return cause{Because: fmt.Sprintf("all %s permits over all sources are in use", thousands(all.Permits)), ToDo: []string{"inspect limits set global.concurrency=…"}}
	}
	var permits, inFlight int64
	for _, st := range list {
		if st.Permits <= 0 {
			return cause{}
		}
		if gate, _ := st.Shut(e.now); gate != "" {
			continue
		}
		permits, inFlight = permits+st.Permits, inFlight+st.InFlight
	}
	if g := e.groupState(); g != nil && g.Share > 0 && g.InFlight >= max(1, int64(float64(permits)*g.Share)) {
		return cause{
			Because: fmt.Sprintf("group ceiling: %s may use %.0f %% of %s permits and has %s in flight", g.Name, g.Share*100, thousands(permits), thousands(g.InFlight)),
			ToDo:    []string{fmt.Sprintf("inspect group set %s ceiling=…", g.Name)},
		}
	}
	if permits > 0 && inFlight >= permits {
		return cause{Because: fmt.Sprintf("all %s permits of its sources are in use", thousands(permits))}
	}
	return cause{}
}

// startsText says when a task starts, as far as that is known.
func (s *session) startsText(c cause) string {
	switch {
	case c.Starts.IsZero():
		return "not known"
	case time.Until(c.Starts) < time.Second:
		return "any moment"
	case c.Guess:
		return "about " + s.until(c.Starts)
	}
	return s.until(c.Starts)
}
