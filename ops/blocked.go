package ops

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/internal/text"
)

// blocked returns the gate that admits no call of the task now. Because is empty if no gate is known to block it.
func blocked(e Evidence, t text.Times) Cause {
	sources := e.usable()
	if len(sources) == 0 {
		if e.Pinned != "" {
			return Cause{Because: fmt.Sprintf("it is pinned to source %s, which no worker serves", e.Pinned)}
		}
		return Cause{}
	}
	c, all := allBlocked(e, sources, t)
	if shared, full := sharedBudgetUsedUp(e); full && (!all || shared.lasts(c)) {
		c, all = shared, true
	}
	if all {
		return c
	}
	return permitsInUse(e, sources, t.Now)
}

// block is why no call of a task goes to one source.
type block struct {
	source string
	what   string    // in a few words
	long   string    // in a sentence
	until  time.Time // zero = only an operator ends it
	step   string    // what ends it earlier, "" = nothing
}

func blockOf(e Evidence, st admission.SourceState, t text.Times) (block, bool) {
	gate, until := st.Blocked(t.Now)
	b := block{source: st.Source, until: until, long: fmt.Sprintf("source %s is %s", st.Source, sourceState(st, t))}
	switch gate {
	case admission.GateHalt:
		b.what, b.step = "halted ("+text.Printable(st.Halt)+")", haltStep(st)
		b.long = fmt.Sprintf("source %s is %s", st.Source, haltText(st, t))
		return b, true
	case admission.GateThrottle:
		b.what = "throttled"
		return b, true
	case admission.GateBreaker:
		b.what, b.step = "breaker open", "inspect resume "+targetOf(st).String()
		return b, true
	default: // a budget may be used up
	}
	budget, full := usedUp(st.Budgets, e.Units)
	if !full {
		return b, false
	}
	c := budgetCause(budget, e.Units)
	return block{st.Source, "units of the " + budget.Period + " used up", c.Because, c.Starts, c.ToDo[0]}, true
}

// allBlocked explains that every source is blocked. The task can start when the first of them is unblocked.
func allBlocked(e Evidence, sources []admission.SourceState, t text.Times) (Cause, bool) {
	var all []block
	for _, st := range sources {
		b, blocked := blockOf(e, st, t)
		if !blocked {
			return Cause{}, false
		}
		all = append(all, b)
	}
	c := Cause{Because: all[0].long}
	if len(all) > 1 {
		var parts []string
		for _, b := range all {
			parts = append(parts, b.source+" "+b.what)
		}
		c.Because = "every source is blocked: " + strings.Join(parts, ", ")
	}
	slices.SortStableFunc(all, func(a, b block) int {
		switch {
		case a.until.IsZero() == b.until.IsZero():
			return a.until.Compare(b.until)
		case a.until.IsZero(): // only an operator ends it: last
			return 1
		}
		return -1
	})
	if c.Starts, c.Guess = all[0].until, true; c.Starts.IsZero() {
		c.When = "when an operator resumes it"
	}
	if i := slices.IndexFunc(all, func(b block) bool { return b.step != "" }); i >= 0 {
		c.ToDo = []string{all[i].step}
	}
	return c, true
}

// sharedBudgetUsedUp explains a global or group unit budget that has no room for the task.
func sharedBudgetUsedUp(e Evidence) (Cause, bool) {
	shared := e.Gates.State.Budgets
	if g := e.group(); g != nil {
		shared = slices.Concat(shared, g.Budgets)
	}
	b, full := usedUp(shared, e.Units)
	if !full {
		return Cause{}, false
	}
	return budgetCause(b, e.Units), true
}

// usedUp returns a budget that has no room for the units. Of several such budgets it returns the one that ends last.
func usedUp(list []admission.BudgetState, units int64) (out admission.BudgetState, full bool) {
	for _, b := range list {
		if b.Spent+b.Reserved+max(units, 1) > b.Cap && !b.Resets.Before(out.Resets) {
			out, full = b, true
		}
	}
	return out, full
}

func budgetCause(b admission.BudgetState, units int64) Cause {
	taken := b.Spent + b.Reserved
	because := fmt.Sprintf("the units of the %s are used up: %s of %s (%s)", b.Period, text.Thousands(taken), text.Thousands(b.Cap), b.Of)
	if left := b.Cap - taken; left > 0 {
		because = fmt.Sprintf("it needs up to %s, and %s of the %s's %s are left (%s)",
			text.Count(units, "unit", "units"), text.Thousands(left), b.Period, text.Thousands(b.Cap), b.Of)
	}
	return Cause{
		Because: because, Starts: b.Resets, Guess: true,
		ToDo: []string{fmt.Sprintf("inspect limits set %s.units_per_%s=…", b.Of, b.Period)},
	}
}

// permitsInUse explains that no permit is free: over all sources, under the group's ceiling, or at the task's sources.
func permitsInUse(e Evidence, sources []admission.SourceState, now time.Time) Cause {
	if all := e.Gates.State; all.Concurrency > 0 && all.InFlight >= all.Concurrency {
		return Cause{
			Because: fmt.Sprintf("all %s permits over all sources are in use", text.Thousands(all.Concurrency)),
			ToDo:    []string{"inspect limits set global.concurrency=…"},
		}
	}
	var permits, inFlight int64
	for _, st := range sources {
		if st.Concurrency <= 0 {
			return Cause{}
		}
		if gate, _ := st.Blocked(now); gate == "" {
			permits, inFlight = permits+st.Concurrency, inFlight+st.InFlight
		}
	}
	if g := e.group(); g != nil && g.Ceiling > 0 && g.InFlight >= max(1, int64(float64(permits)*g.Ceiling)) {
		return Cause{
			Because: fmt.Sprintf("group ceiling: %s may use %.0f %% of %s permits and has %s in flight",
				g.Name, g.Ceiling*100, text.Thousands(permits), text.Thousands(g.InFlight)),
			ToDo: []string{fmt.Sprintf("inspect group set %s ceiling=…", g.Name)},
		}
	}
	if permits > 0 && inFlight >= permits {
		return Cause{Because: fmt.Sprintf("all %s permits of its sources are in use", text.Thousands(permits))}
	}
	return Cause{}
}
