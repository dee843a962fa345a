package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/admission"
	"reprise/tasks"
)

func newSources(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sources",
		Short: "Each account and path: state, calls in flight, rate, breaker, budgets (costs nothing)",
		Example: `  inspect sources
  inspect sources --json
  inspect limits                # what was configured, and what is in force`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.with(cmd.Context(), needsRedis, listSources) },
	}
}

// sourceRow is a source+path for --json.
type sourceRow struct {
	Source         string      `json:"source"`
	Path           tasks.Path  `json:"path"`
	Shut           string      `json:"shut_by"`    // halt, throttle, breaker; "" = open
	ShutUntil      *time.Time  `json:"shut_until"` // null = open, or only a person opens it
	Halt           string      `json:"halt"`
	InFlight       int64       `json:"in_flight"`
	Limit          int64       `json:"limit"` // 0 = none
	LimitLearned   bool        `json:"limit_learned"`
	PerMinute      int64       `json:"requests_per_minute"` // 0 = no limit
	RateLearned    bool        `json:"rate_learned"`
	SuccessPerMin  int64       `json:"successes_per_minute"`
	Health         float64     `json:"health"`
	LatencyMS      int64       `json:"latency_ms"`
	Failures       int64       `json:"failures_in_a_row"`
	LastSuccess    *time.Time  `json:"last_success"`
	ThrottledUntil *time.Time  `json:"throttled_until"`
	BreakerOpen    bool        `json:"breaker_open"`
	BreakerUntil   *time.Time  `json:"breaker_until"`
	Fingerprint    string      `json:"refused_fingerprint"`
	Epoch          int64       `json:"epoch"`
	Budgets        []budgetRow `json:"budgets"`
}

type budgetRow struct {
	Of       string     `json:"of"` // main/recognize, global, group/ugc
	Period   string     `json:"period"`
	Cap      int64      `json:"cap"`
	Spent    int64      `json:"spent"`
	Reserved int64      `json:"reserved"`
	Resets   *time.Time `json:"resets"`
	Missing  bool       `json:"missing"` // not seeded yet: nothing is admitted
}

func sourceOf(st admission.SourceState, now time.Time) sourceRow {
	gate, until := st.Blocked(now)
	return sourceRow{
		Source: st.Source, Path: st.Path, Shut: string(gate), ShutUntil: stamp(until), Halt: haltReason(st.Halt), InFlight: st.InFlight,
		Limit: st.Concurrency, LimitLearned: st.ConcurrencyLearned, PerMinute: st.RequestsPerMinute, RateLearned: st.RateLearned,
		SuccessPerMin: st.SuccessesPerMinute, Health: st.Health, LatencyMS: st.Latency.Milliseconds(), Failures: st.Failures,
		LastSuccess: stamp(st.LastSuccess), ThrottledUntil: stamp(st.ThrottledUntil), BreakerOpen: st.BreakerOpen,
		BreakerUntil: stamp(st.BreakerUntil), Fingerprint: st.LastRefusedToken, Epoch: st.Epoch, Budgets: budgetRows(st.Budgets),
	}
}

func budgetRows(list []admission.BudgetState) []budgetRow {
	out := []budgetRow{}
	for _, b := range list {
		out = append(out, budgetRow{
			Of: budgetOf(b), Period: periodName(b), Cap: b.Cap, Spent: b.Spent, Reserved: b.Reserved, Resets: stamp(b.End), Missing: b.Missing,
		})
	}
	return out
}

func budgetOf(b admission.BudgetState) string {
	switch {
	case b.Group != "":
		return "group/" + b.Group
	case b.Source != "":
		return b.Source + "/" + string(b.Path)
	}
	return "global"
}

// periodName is day or month: no day is longer than 25 hours.
func periodName(b admission.BudgetState) string {
	if b.End.Sub(b.Start) <= 26*time.Hour {
		return "day"
	}
	return "month"
}

// budgets says how far unit budgets are used: "day 61 % of 2,000".
func (s *session) budgets(list []admission.BudgetState) string {
	var parts []string
	for _, b := range list {
		part := fmt.Sprintf("%s %s of %s", periodName(b), share(b.Spent+b.Reserved, b.Cap), thousands(b.Cap))
		switch {
		case b.Missing:
			part = fmt.Sprintf("%s of %s, not counted yet", periodName(b), thousands(b.Cap))
		case b.Spent+b.Reserved >= b.Cap:
			part += ", used up until " + s.clock(b.End)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// sourceState says in one phrase whether calls may go.
func (s *session) sourceState(st admission.SourceState, now time.Time) cell {
	gate, until := st.Blocked(now)
	switch gate {
	case admission.GateHalt:
		return tinted(fmt.Sprintf("HALTED %s since %s, probe %s", haltReason(st.Halt), s.clock(st.HaltSince), s.probe(st)), red)
	case admission.GateThrottle:
		return tinted("throttled until "+s.until(until), yellow)
	case admission.GateBreaker:
		return tinted("breaker open, probe "+s.until(until), red)
	default: // nothing else shuts a whole source
	}
	if st.LastRefusedToken != "" {
		return tinted("ok for other tokens than "+short(st.LastRefusedToken, 9), yellow)
	}
	return tinted("ok", green)
}

func inFlight(n, limit int64, learned bool) string {
	if limit <= 0 {
		return thousands(n)
	}
	out := thousands(n) + "/" + thousands(limit)
	if learned {
		out += " learned"
	}
	return out
}

func listSources(ctx context.Context, s *session) error {
	g, err := s.gates(ctx)
	if err != nil {
		return err
	}
	state, err := g.State(ctx)
	if err != nil {
		return err
	}
	if s.json {
		return s.sourcesJSON(state)
	}
	if len(state.Sources) == 0 {
		s.line("no sources: no worker has written any to this Redis yet")
		return nil
	}
	t := table{head: []string{"SOURCE/PATH", "IN FLIGHT", "RATE/MIN", "DONE/MIN", "HEALTH", "LATENCY", "STATE", "BUDGETS"}}
	for _, st := range state.Sources {
		rate := "–"
		if st.RequestsPerMinute > 0 {
			rate = thousands(st.RequestsPerMinute)
			if st.RateLearned {
				rate += " learned"
			}
		}
		latency := "–"
		if st.Latency > 0 {
			latency = span(st.Latency)
		}
		t.add(text(st.Source+"/"+string(st.Path)), right(inFlight(st.InFlight, st.Concurrency, st.ConcurrencyLearned)), right(rate), numberOr(st.SuccessesPerMinute, "–"),
			right(fmt.Sprintf("%.0f %%", st.Health*100)), right(latency), s.sourceState(st, state.Now), text(firstOf(s.budgets(st.Budgets), "–")))
	}
	s.table(t)
	s.line("together %s in flight%s", inFlight(state.InFlight, state.Concurrency, false), tail("; budgets: ", s.budgets(state.Budgets)))
	for _, group := range state.Groups {
		s.line("group %s: %s in flight%s", group.Name, thousands(group.InFlight), tail("; budgets: ", s.budgets(group.Budgets)))
	}
	return nil
}

func tail(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func (s *session) sourcesJSON(state admission.State) error {
	type groupState struct {
		Name     string      `json:"name"`
		InFlight int64       `json:"in_flight"`
		Budgets  []budgetRow `json:"budgets"`
	}
	report := struct {
		Now      *time.Time   `json:"now"`
		InFlight int64        `json:"in_flight"`
		Limit    int64        `json:"limit"`
		Budgets  []budgetRow  `json:"budgets"`
		Sources  []sourceRow  `json:"sources"`
		Groups   []groupState `json:"groups"`
	}{stamp(state.Now), state.InFlight, state.Concurrency, budgetRows(state.Budgets), []sourceRow{}, []groupState{}}
	for _, st := range state.Sources {
		report.Sources = append(report.Sources, sourceOf(st, state.Now))
	}
	for _, g := range state.Groups {
		report.Groups = append(report.Groups, groupState{g.Name, g.InFlight, budgetRows(g.Budgets)})
	}
	return s.writeJSON(report)
}

// minutes is how long n calls take at so many a minute.
func minutes(n, perMinute int64) time.Duration {
	return time.Duration(float64(n) / float64(perMinute) * float64(time.Minute))
}
