package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/store"
	"reprise/tasks"
)

// whyScreens is how many tasks one why explains at most.
const whyScreens = 5

func newWhy(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why KEY|FILE|URL|EXTERNAL-ID",
		Short: "What one task waits for, until when, and what to do about it (costs nothing)",
		Long:  `KEY may be cut short, FILE may be the last part of a path.`,
		Example: `  inspect why clips/a.mp3
  inspect why recognize_3q…
  inspect why order-4711 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), needsRedis|needsStore, func(ctx context.Context, s *session) error {
				return s.why(ctx, args[0])
			})
		},
	}
}

// whyReport is one task for --json.
type whyReport struct {
	Key            string        `json:"key"`
	Input          string        `json:"input"` // URLs without query
	Names          []string      `json:"names"`
	ExternalIDs    []string      `json:"external_ids"`
	Batches        []string      `json:"batches"`
	Path           tasks.Path    `json:"path"`
	Group          string        `json:"group"`
	Queue          string        `json:"queue"`
	State          string        `json:"state"`
	QueueState     string        `json:"queue_state"` // asynq's word, "" = not queued
	Because        string        `json:"because"`
	Starts         *time.Time    `json:"starts"`      // null = not known, or not by itself
	StartsWhen     string        `json:"starts_when"` // what must happen first; "" = nothing
	StartsGuessed  bool          `json:"starts_guessed"`
	ToDo           []string      `json:"to_do"`
	PendingSince   *time.Time    `json:"pending_since"`
	Ahead          *int64        `json:"ahead"` // pending tasks before it
	Counted        int           `json:"counted"`
	MaxAttempts    int           `json:"max_attempts"`
	PossiblyBilled int           `json:"possibly_billed"`
	MaxBilled      int           `json:"max_possibly_billed"`
	Calls          costRow       `json:"calls"`
	LastOutcome    tasks.Outcome `json:"last_outcome"`
	LastReason     string        `json:"last_reason"`
	LastAt         *time.Time    `json:"last_at"`
	RequestID      string        `json:"request_id"`
	InFlightUntil  *time.Time    `json:"in_flight_until"`
	Pause          []reasonRow   `json:"pause_reasons"`
	Workers        int           `json:"workers"` // that serve its queue
	Sources        []sourceRow   `json:"sources"`
	Budgets        []budgetRow   `json:"budgets"`
}

func (s *session) why(ctx context.Context, name string) error {
	keys, err := s.find(ctx, name)
	if err != nil {
		return err
	}
	g, err := s.gates(ctx)
	if err != nil {
		return err
	}
	reports := []whyReport{}
	for i, key := range keys[:min(len(keys), whyScreens)] {
		e, err := s.gather(ctx, g, key)
		if err != nil {
			return err
		}
		c := s.because(e)
		if c.State == "UNKNOWN" {
			return refused("nothing is known of %s: %s", printable(key), c.Because)
		}
		reports = append(reports, s.whyReport(e, c))
		if !s.json {
			if i > 0 {
				s.line("")
			}
			s.screen(e, c, reports[i])
		}
	}
	if s.json {
		return s.writeJSON(reports)
	}
	if more := len(keys) - len(reports); more > 0 {
		s.line("\nand %s of that name: inspect results %s", count(more, "more task", "more tasks"), shownName(name))
	}
	return nil
}

func (s *session) whyReport(e evidence, c cause) whyReport {
	r := whyReport{
		Key: e.key, Input: e.input, Path: e.path(), Group: e.group, Queue: e.queue, State: c.State, QueueState: e.state, Because: c.Because,
		Starts: stamp(c.Starts), StartsWhen: c.When, StartsGuessed: c.Guess && !c.Starts.IsZero(), ToDo: append([]string{}, c.ToDo...), PendingSince: stamp(e.since),
		Counted: e.snapshot.Record.Counted, MaxAttempts: s.cfg.Budgets.MaxAttempts, PossiblyBilled: e.snapshot.Record.PossiblyBilled,
		MaxBilled: s.cfg.Budgets.MaxPossiblyBilled, Calls: costRow{Of: e.key}, LastOutcome: e.snapshot.Record.LastOutcome,
		InFlightUntil: stamp(e.snapshot.Until), Pause: reasonRows(e.pause), Workers: e.workers,
		Names: []string{}, ExternalIDs: []string{}, Batches: []string{}, Sources: []sourceRow{}, Budgets: budgetRows(e.snapshot.State.Budgets),
	}
	if e.ahead >= 0 {
		r.Ahead = &e.ahead
	}
	for _, sub := range e.subs {
		r.Names = append(r.Names, sub.Submission.Name)
		r.ExternalIDs = append(r.ExternalIDs, sub.Submission.ExternalID)
		r.Batches = append(r.Batches, sub.Submission.Batch)
	}
	r.Names, r.ExternalIDs, r.Batches = filled(r.Names), filled(r.ExternalIDs), filled(r.Batches)
	for _, call := range e.calls {
		r.Calls.add(call)
	}
	r.Calls.CostAtPrice = s.atPrice(r.Calls)
	if last := lastCall(e.calls); last != nil {
		r.LastOutcome, r.LastReason, r.LastAt, r.RequestID = last.Outcome, last.Reason, stamp(last.At), last.RequestID
	}
	for _, st := range e.usable() {
		r.Sources = append(r.Sources, sourceOf(st, e.now))
		r.Budgets = append(r.Budgets, budgetRows(st.Budgets)...)
	}
	if g := e.groupState(); g != nil {
		r.Budgets = append(r.Budgets, budgetRows(g.Budgets)...)
	}
	return r
}

// filled is the list without empty and repeated texts.
func filled(list []string) []string {
	out := distinct(list)
	if len(out) > 0 && out[0] == "" {
		out = out[1:]
	}
	return append([]string{}, out...)
}

func lastCall(calls []store.Call) *store.Call {
	if len(calls) == 0 {
		return nil
	}
	return &calls[len(calls)-1]
}

// screen prints one task on one screen.
func (s *session) screen(e evidence, c cause, r whyReport) {
	row := func(name, format string, args ...any) { s.line("  %-9s %s", name, fmt.Sprintf(format, args...)) }
	state := map[string]colour{"DONE": green, "WAITING": yellow, "RUNNING": green}[c.State]
	if state == plain {
		state = red
	}
	age := ""
	if !e.since.IsZero() && !e.finished() {
		age = " for " + span(time.Since(e.since))
	}
	s.line("%s%s   %s", s.paint(c.State, state), age, s.title(r))
	row("because", "%s", c.Because)
	if !e.finished() {
		row("starts", "%s", s.startsText(c))
	}
	row("attempts", "%s", s.attempts(r))
	if r.LastOutcome != "" {
		row("last", "%s", s.lastText(r))
	}
	if c.State == "DONE" { // what is shut now is of no interest
		return
	}
	for i, st := range e.usable() {
		row(onFirst(i, "sources"), "%s %s, %s in flight%s", st.Source, s.sourceState(st, e.now).text,
			inFlight(st.InFlight, st.Concurrency, st.ConcurrencyLearned), tail(", budgets ", s.budgets(st.Budgets)))
	}
	if shared := s.budgets(e.snapshot.State.Budgets); shared != "" {
		row("budgets", "%s over all sources", shared)
	}
	if g := e.groupState(); g != nil && len(g.Budgets) > 0 {
		row("budgets", "%s of group %s", s.budgets(g.Budgets), g.Name)
	}
	row("queue", "%s", s.queueText(e))
	for i, todo := range c.ToDo {
		row(onFirst(i, "to do"), "%s", todo)
	}
}

// onFirst names the first of several lines.
func onFirst(i int, name string) string {
	if i == 0 {
		return name
	}
	return ""
}

func (s *session) title(r whyReport) string {
	parts := []string{r.Key, string(r.Path)}
	if r.Group != "" {
		parts = append(parts, "group "+r.Group)
	}
	if len(r.Batches) > 0 {
		parts = append(parts, "batch "+strings.Join(r.Batches[:min(3, len(r.Batches))], " "))
	}
	if len(r.ExternalIDs) > 0 {
		parts = append(parts, "external id "+strings.Join(r.ExternalIDs[:min(3, len(r.ExternalIDs))], " "))
	}
	if r.Input != "" {
		parts = append(parts, r.Input)
	}
	return printable(strings.Join(parts, ", "))
}

// attempts says what the task has used up so far.
func (s *session) attempts(r whyReport) string {
	text := fmt.Sprintf("counted %d of %d, possibly billed %d of %d; %s, %s", r.Counted, r.MaxAttempts, r.PossiblyBilled, r.MaxBilled,
		count(r.Calls.Calls, "call", "calls"), count(r.Calls.Units, "unit", "units"))
	if r.Calls.Units > 0 {
		text += " at most billed, " + s.spent(r.Calls)
	}
	return text
}

func (s *session) lastText(r whyReport) string {
	text := string(r.LastOutcome)
	if r.LastAt != nil {
		text += ", " + s.since(*r.LastAt)
	}
	if r.RequestID != "" {
		text += ", request id " + printable(r.RequestID)
	}
	return text + tail(": ", short(printable(beyond(r.LastReason, r.LastOutcome)), 120))
}

func (s *session) queueText(e evidence) string {
	text := fmt.Sprintf("%s, %s waiting, %s running, %s", e.queue, thousands(e.stat.waiting()), thousands(e.stat.Active), count(e.workers, "worker", "workers"))
	if e.pause.Paused() || e.stat.Paused {
		return text + ", paused: " + firstOf(strings.Join(reasonNames(e.pause), ", "), "elsewhere")
	}
	return text
}
