package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/ops"
)

// whyScreens is the most tasks that one `inspect why` explains.
const whyScreens = 5

func newWhy(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why KEY|FILE|URL|EXTERNAL-ID",
		Short: "What one task waits for, until when, and what to do about it",
		Long:  `KEY may be shortened, FILE may be the last part of a path.`,
		Example: `  inspect why clips/a.mp3
  inspect why recognize_3q…
  inspect why order-4711 --json`,
		Args: cobra.ExactArgs(1),
		RunE: a.run(needsRedis|needsStore, func(ctx context.Context, s *session, args []string) error {
			r, err := s.Tasks.Why(ctx, args[0], whyScreens)
			return s.show(r.Tasks, err, func() {
				for i, w := range r.Tasks {
					if i > 0 {
						s.Line("")
					}
					s.printWhy(w)
				}
				if r.More > 0 {
					s.Line("\nand %s of that name: inspect results %s", text.Count(r.More, "more task", "more tasks"), ops.ShownName(args[0]))
				}
			})
		}),
	}
}

// printWhy prints one task.
func (v view) printWhy(w ops.Why) {
	row := func(name, format string, args ...any) { v.Line("  %-9s %s", name, fmt.Sprintf(format, args...)) }
	age := ""
	if w.PendingSince != nil && w.StartsText != "" {
		age = " for " + text.Span(v.Now.Sub(*w.PendingSince))
	}
	v.Line("%s%s   %s", v.Paint(w.State, colours[w.State]), age, whyTitle(w))
	row("because", "%s", w.Because)
	if w.StartsText != "" {
		row("starts", "%s", w.StartsText)
	}
	attempts := fmt.Sprintf("counted %d of %d, possibly billed %d of %d; %s, %s", w.Counted, w.MaxAttempts, w.PossiblyBilled, w.MaxBilled,
		text.Count(w.Calls.Calls, "call", "calls"), text.Count(w.Calls.Units, "unit", "units"))
	if w.Calls.Units > 0 {
		attempts += " billed at most, " + w.Calls.Sentence()
	}
	row("attempts", "%s", attempts)
	if w.LastOutcome != "" {
		row("last", "%s", v.lastText(w))
	}
	if w.State == "DONE" { // what is blocked now does not concern it
		return
	}
	label := "sources"
	for _, src := range w.Sources {
		calls := inFlight(src.InFlight, src.Concurrency) + learned(src.ConcurrencyLearned)
		row(label, "%s %s, %s in flight%s", src.Source, src.State, calls, after(", budgets ", v.budgets(src.Budgets)))
		label = ""
	}
	for _, b := range w.SharedBudgets {
		of := "all sources"
		if group, ok := strings.CutPrefix(b.Of, "group/"); ok {
			of = "group " + group
		}
		row("budgets", "%s of %s", v.budgets([]admission.BudgetState{b}), of)
	}
	row("queue", "%s, %s waiting, %s running, %s%s", w.Queue, text.Thousands(w.Waiting), text.Thousands(w.Running),
		text.Count(w.Workers, "worker", "workers"), after(", paused: ", w.PausedFor))
	label = "to do"
	for _, todo := range w.ToDo {
		row(label, "%s", todo)
		label = ""
	}
}

func whyTitle(w ops.Why) string {
	parts := []string{w.Key, string(w.Path)}
	if w.Group != "" {
		parts = append(parts, "group "+w.Group)
	}
	if len(w.Batches) > 0 {
		parts = append(parts, "batch "+strings.Join(w.Batches[:min(3, len(w.Batches))], " "))
	}
	if len(w.ExternalIDs) > 0 {
		parts = append(parts, "external id "+strings.Join(w.ExternalIDs[:min(3, len(w.ExternalIDs))], " "))
	}
	if w.Input != "" {
		parts = append(parts, w.Input)
	}
	return text.Printable(strings.Join(parts, ", "))
}

func (v view) lastText(w ops.Why) string {
	last := string(w.LastOutcome)
	if w.LastAt != nil {
		last += ", " + v.Since(*w.LastAt)
	}
	reason := text.Short(text.Printable(withoutOutcome(w.LastReason, w.LastOutcome)), 120)
	return last + after(", request id ", text.Printable(w.RequestID)) + after(": ", reason)
}
