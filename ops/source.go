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

// Source is an account on one path.
type Source struct {
	Source          string     `json:"source"`
	Path            tasks.Path `json:"path"`
	State           string     `json:"state"`         // one phrase: ok, or what blocks calls and until when
	BlockedBy       string     `json:"blocked_by"`    // halt, throttle, breaker; "" = not blocked
	BlockedUntil    *time.Time `json:"blocked_until"` // null = not blocked, or until an operator resumes it
	Halt            string     `json:"halt"`
	InFlight        int64      `json:"in_flight"`
	Limit           int64      `json:"limit"` // of calls in flight; 0 = none
	LimitLearned    bool       `json:"limit_learned"`
	PerMinute       int64      `json:"requests_per_minute"` // 0 = no limit
	RateLearned     bool       `json:"rate_learned"`
	SuccessesPerMin int64      `json:"successes_per_minute"`
	Health          float64    `json:"health"`     // success average, 0 … 1
	LatencyMS       int64      `json:"latency_ms"` // 0 = no call yet
	Failures        int64      `json:"failures_in_a_row"`
	LastSuccess     *time.Time `json:"last_success"`
	ThrottledUntil  *time.Time `json:"throttled_until"`
	BreakerOpen     bool       `json:"breaker_open"`
	BreakerUntil    *time.Time `json:"breaker_until"`
	RefusedToken    string     `json:"refused_fingerprint"` // of the token that AudD refused last; "" = none
	Epoch           int64      `json:"epoch"`
	Budgets         []Budget   `json:"budgets"`
}

// Budget is a unit budget of the current day or month.
type Budget struct {
	Of       string     `json:"of"`     // main/recognize, global, group/ugc
	Period   string     `json:"period"` // day or month
	Cap      int64      `json:"cap"`
	Spent    int64      `json:"spent"`
	Reserved int64      `json:"reserved"` // by calls under way
	Resets   *time.Time `json:"resets"`
	Missing  bool       `json:"missing"` // not counted yet: no call is admitted
}

// GroupTraffic is the calls and budgets of a group.
type GroupTraffic struct {
	Name     string   `json:"name"`
	InFlight int64    `json:"in_flight"`
	Budgets  []Budget `json:"budgets"`
}

// SourcesReport is all accounts at one moment of Redis's clock.
type SourcesReport struct {
	Now      *time.Time     `json:"now"`
	InFlight int64          `json:"in_flight"`
	Limit    int64          `json:"limit"` // of calls in flight over all sources; 0 = none
	Budgets  []Budget       `json:"budgets"`
	Sources  []Source       `json:"sources"`
	Groups   []GroupTraffic `json:"groups"`
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
	return SourcesReport{
		Now: stamp(state.Now), InFlight: state.InFlight, Limit: state.Concurrency, Budgets: budgetsOf(state.Budgets),
		Sources: mapped(state.Sources, func(st admission.SourceState) Source { return sourceOf(st, t) }),
		Groups: mapped(state.Groups, func(g admission.GroupState) GroupTraffic {
			return GroupTraffic{g.Name, g.InFlight, budgetsOf(g.Budgets)}
		}),
	}, nil
}

func sourceOf(st admission.SourceState, t text.Times) Source {
	gate, until := st.Blocked(t.Now)
	return Source{
		Source: st.Source, Path: st.Path, State: sourceState(st, t), BlockedBy: string(gate), BlockedUntil: stamp(until), Halt: text.Printable(st.Halt),
		InFlight: st.InFlight, Limit: st.Concurrency, LimitLearned: st.ConcurrencyLearned, PerMinute: st.RequestsPerMinute, RateLearned: st.RateLearned,
		SuccessesPerMin: st.SuccessesPerMinute, Health: st.Health, LatencyMS: st.Latency.Milliseconds(), Failures: st.Failures,
		LastSuccess: stamp(st.LastSuccess), ThrottledUntil: stamp(st.ThrottledUntil), BreakerOpen: st.BreakerOpen,
		BreakerUntil: stamp(st.BreakerUntil), RefusedToken: st.LastRefusedToken, Epoch: st.Epoch, Budgets: budgetsOf(st.Budgets),
	}
}

func budgetsOf(list []admission.BudgetState) []Budget {
	return mapped(list, func(b admission.BudgetState) Budget {
		return Budget{budgetScope(b), periodName(b), b.Cap, b.Spent, b.Reserved, stamp(b.End), b.Missing}
	})
}

func budgetScope(b admission.BudgetState) string {
	switch {
	case b.Group != "":
		return "group/" + b.Group
	case b.Source != "":
		return b.Source + "/" + string(b.Path)
	}
	return "global"
}

// periodName returns day or month. No day is longer than 25 hours.
func periodName(b admission.BudgetState) string {
	if b.End.Sub(b.Start) <= 26*time.Hour {
		return "day"
	}
	return "month"
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
