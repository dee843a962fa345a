package main

import (
	"fmt"
	"slices"
	"strings"
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
	c, closed := s.closed(e, list)
	if shared, full := s.sharedFull(e); full && (!closed || shared.lasts(c)) {
		c, closed = shared, true
	}
	if closed {
		return c
	}
	return s.busy(e, list)
}

// closure is what keeps every call of a task from one source.
type closure struct {
	source string
	what   string    // in a few words
	long   string    // in a sentence
	until  time.Time // zero = a person opens it
	step   string    // what opens it earlier, "" = nothing
}

func (s *session) closureOf(e evidence, st admission.SourceState) (closure, bool) {
	resume := fmt.Sprintf("inspect resume %s/%s", st.Source, st.Path)
	gate, until := st.Blocked(e.now)
	c := closure{source: st.Source, until: until, long: fmt.Sprintf("source %s is %s", st.Source, s.sourceState(st, e.now).text)}
	switch gate {
	case admission.GateHalt:
		c.what, c.step = "halted ("+haltReason(st.Halt)+")", haltStep(st)
		c.long = fmt.Sprintf("source %s is HALTED %s by %s since %s", st.Source, haltReason(st.Halt), words(firstOf(st.HaltBy, "?")), s.clock(st.HaltSince))
		return c, true
	case admission.GateThrottle:
		c.what = "throttled"
		return c, true
	case admission.GateBreaker:
		c.what, c.step = "breaker open", resume
		return c, true
	default: // a budget may keep it
	}
	b, full := used(st.Budgets, e.units)
	if !full {
		return c, false
	}
	budget := s.budgetCause(b, e.units)
	return closure{st.Source, "units of the " + periodName(b) + " used up", budget.Because, budget.Starts, budget.ToDo[0]}, true
}

// closed explains sources that are all closed. It opens with the first of them.
func (s *session) closed(e evidence, list []admission.SourceState) (cause, bool) {
	var all []closure
	for _, st := range list {
		c, shut := s.closureOf(e, st)
		if !shut {
			return cause{}, false
		}
		all = append(all, c)
	}
	c := cause{Because: all[0].long}
	if len(all) > 1 {
		var parts []string
		for _, one := range all {
			parts = append(parts, one.source+" "+one.what)
		}
		c.Because = "every source is shut: " + strings.Join(parts, ", ")
	}
	slices.SortStableFunc(all, func(a, b closure) int {
		switch {
		case a.until.IsZero() == b.until.IsZero():
			return a.until.Compare(b.until)
		case a.until.IsZero(): // a person's comes last
			return 1
		}
		return -1
	})
	if c.Starts, c.Guess = all[0].until, true; c.Starts.IsZero() {
		c.When = "when a person resumes it"
	}
	if i := slices.IndexFunc(all, func(one closure) bool { return one.step != "" }); i >= 0 {
		c.ToDo = []string{all[i].step}
	}
	return c, true
}

// sharedFull explains a unit budget of everything or of the group that has no
// room for the task.
func (s *session) sharedFull(e evidence) (cause, bool) {
	shared := e.snapshot.State.Budgets
	if g := e.groupState(); g != nil {
		shared = slices.Concat(shared, g.Budgets)
	}
	b, full := used(shared, e.units)
	if !full {
		return cause{}, false
	}
	return s.budgetCause(b, e.units), true
}

// used finds a budget that has no room for so many units; of several the one
// that lasts longest.
func used(list []admission.BudgetState, units int64) (out admission.BudgetState, full bool) {
	for _, b := range list {
		if b.Spent+b.Reserved+max(units, 1) > b.Cap && !b.End.Before(out.End) {
			out, full = b, true
		}
	}
	return out, full
}

func (s *session) budgetCause(b admission.BudgetState, units int64) cause {
	taken := b.Spent + b.Reserved
	because := fmt.Sprintf("the units of the %s are used up: %s of %s (%s)", periodName(b), thousands(taken), thousands(b.Cap), budgetOf(b))
	if left := b.Cap - taken; left > 0 {
		because = fmt.Sprintf("it needs %s at most, and %s of the %s's %s are left (%s)", count(units, "unit", "units"), thousands(left), periodName(b), thousands(b.Cap), budgetOf(b))
	}
	return cause{
		Because: because, Starts: b.End, Guess: true,
		ToDo: []string{fmt.Sprintf("inspect limits set %s.units_per_%s=…", budgetOf(b), periodName(b))},
	}
}

// busy explains permits that are all in use: of everything, of the group's
// ceiling, or of every source.
func (s *session) busy(e evidence, list []admission.SourceState) cause {
	all := e.snapshot.State
	if all.Concurrency > 0 && all.InFlight >= all.Concurrency {
		return cause{Because: fmt.Sprintf("all %s permits over all sources are in use", thousands(all.Concurrency)), ToDo: []string{"inspect limits set global.concurrency=…"}}
	}
	var permits, inFlight int64
	for _, st := range list {
		if st.Concurrency <= 0 {
			return cause{}
		}
		if gate, _ := st.Blocked(e.now); gate != "" {
			continue
		}
		permits, inFlight = permits+st.Concurrency, inFlight+st.InFlight
	}
	if g := e.groupState(); g != nil && g.Ceiling > 0 && g.InFlight >= max(1, int64(float64(permits)*g.Ceiling)) {
		return cause{
			Because: fmt.Sprintf("group ceiling: %s may use %.0f %% of %s permits and has %s in flight", g.Name, g.Ceiling*100, thousands(permits), thousands(g.InFlight)),
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
	case c.When != "":
		return c.When
	case c.Starts.IsZero():
		return "not known"
	case time.Until(c.Starts) < time.Second:
		return "any moment"
	case c.Guess:
		return "about " + s.until(c.Starts)
	}
	return s.until(c.Starts)
}
