package main

import (
	"fmt"
	"slices"
	"strings"

	"reprise/intake"
	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/tasks"
)

func inputs(n int) string { return text.Count(n, "input", "inputs") }

// warn prints a line on standard error.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.Err, "enqueue: "+format+"\n", args...)
}

// printProblems prints why inputs were refused or failed, and the warnings of the other inputs.
func (a *app) printProblems(plan *intake.Plan) {
	for _, it := range plan.BadItems() {
		a.warn("%s%s", label(it), text.Printable(it.Reason))
	}
	for _, it := range plan.Items {
		if it.Warning != "" && it.Status != intake.Refused && it.Status != intake.Failed {
			a.warn("warning: %s%s", label(it), text.Printable(it.Warning))
		}
	}
}

// label returns the start of a sentence about an input: its place in the manifest and its name, if it has them.
func label(it intake.Item) string {
	out := ""
	if at := it.At.String(); at != "" {
		out = text.Printable(at) + ": "
	}
	if it.Name != "" {
		out += text.Printable(it.Name) + " "
	}
	return out
}

func (a *app) printDryRun(plan *intake.Plan) {
	c := plan.Counts()
	count := func(s intake.Status) string { return text.Thousands(c.ByStatus[s]) }
	a.Line("found %s   to queue %s   already done %s (free)   already queued %s   same content %s   refused %s", text.Thousands(c.Found),
		count(intake.ToQueue), count(intake.AlreadyDone), count(intake.AlreadyQueued), count(intake.SameContent), count(intake.Refused))
	a.Line("units %s at most   %s", text.Thousands(c.Units), a.cfg.Money(c.Units))
	a.printLongClips(c)
	if c.Resent > 0 {
		a.Line("sent before, and billed again because of --force: %s", text.Count(c.Resent, "upload", "uploads"))
	}
	if plan.Request.NextID {
		a.Line("new audio_ids are assigned when the uploads are queued")
	}
	a.Line(nothingQueued)
}

func (a *app) printLongClips(c intake.Counts) {
	if c.LongClips > 0 {
		a.Line("%s longer than 12 s; AudD analyses only the first 12 s", text.Count(c.LongClips, "input is", "inputs are"))
	}
}

// printQueued prints the result of Enqueue.
func (a *app) printQueued(plan *intake.Plan) {
	c := plan.Counts()
	parts := []string{text.Thousands(c.ByStatus[intake.Queued]) + " queued"}
	for _, s := range []struct {
		status intake.Status
		text   string
	}{
		{intake.AlreadyQueued, "already queued"}, {intake.AlreadyDone, "already done (free)"}, {intake.SameContent, "with the same content"},
		{intake.Refused, "refused"}, {intake.Failed, "failed"},
	} {
		if n := c.ByStatus[s.status]; n > 0 {
			parts = append(parts, text.Thousands(n)+" "+s.text)
		}
	}
	group := ""
	if plan.Request.Group != "" {
		group = " in group " + plan.Request.Group
	}
	a.Line("batch %s%s: %s; %s units at most, %s", plan.Batch, group, strings.Join(parts, ", "), text.Thousands(c.Units), a.cfg.Money(c.Units))
	a.printLongClips(c)
	a.printIDs(plan)
	switch {
	case a.wait || c.ByStatus[intake.Queued]+c.ByStatus[intake.AlreadyQueued] == 0:
	case plan.Request.Force:
		a.Line("To see the results, run the command with --wait and without --force, which would be billed again.")
	default:
		a.Line("To see the results, run the same command with --wait; nothing is queued twice.")
	}
}

// printIDs prints the audio_id that was assigned to each file, because AudD does not list them.
func (a *app) printIDs(plan *intake.Plan) {
	without := []intake.Status{intake.ToQueue, intake.Refused, intake.Failed}
	for i := range plan.Items {
		it := &plan.Items[i]
		if id, ok := it.AudioID(); ok && plan.Request.NextID && !slices.Contains(without, it.Status) {
			a.Line("audio_id %d  %s", id, text.Printable(it.Name))
		}
	}
}

// word returns the outcome of a result that is done, and the verdict of other results.
func word(r intake.Result) string {
	if r.Verdict != tasks.Done {
		return string(r.Verdict)
	}
	return string(r.Outcome)
}

func (a *app) printResult(r intake.Result) {
	if a.json {
		return
	}
	summary, colour := text.Song(r.Result), cli.Green
	switch {
	case r.Verdict != tasks.Done:
		summary, colour = r.Reason, cli.Red
	case r.Outcome == tasks.NoMatch:
		colour = cli.Yellow
	}
	if r.Cached {
		summary = strings.TrimSpace(summary + " (already done, free)")
	}
	a.Line("%s %s  %s", a.Paint(fmt.Sprintf("%-9s", word(r)), colour), text.Printable(r.Name), text.Printable(summary))
}

func (a *app) printTotals(results []intake.Result) {
	if len(results) == 0 {
		return
	}
	counts := map[string]int{}
	for _, r := range results {
		counts[word(r)]++
	}
	var parts []string
	for _, w := range []string{"match", "no_match", "not_released", "uploaded", "archive", "hold"} {
		if n := counts[w]; n > 0 {
			parts = append(parts, text.Thousands(n)+" "+w)
		}
	}
	a.Line("%s finished: %s", inputs(len(results)), strings.Join(parts, ", "))
}
