package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"reprise/intake"
	"reprise/tasks"
)

// printer writes for people, or collects for --json.
type printer struct {
	*app
	colour bool
}

// bad says of each bad input what is wrong with it.
func (p *printer) bad(plan *intake.Plan) {
	for _, it := range plan.BadItems() {
		fmt.Fprintf(p.std.err, "enqueue: %s%s\n", label(it), printable(it.Reason))
	}
}

// warnings says what is odd about inputs that are not refused.
func (p *printer) warnings(plan *intake.Plan) {
	for _, it := range plan.Items {
		if it.Warning != "" && it.Status != intake.Refused && it.Status != intake.Failed {
			fmt.Fprintf(p.std.err, "enqueue: warning: %s%s\n", label(it), printable(it.Warning))
		}
	}
}

// label is what a sentence about an input begins with: its place in the
// manifest, if any, and its name, if it has one.
func label(it intake.Item) string {
	var b strings.Builder
	if at := it.At.String(); at != "" {
		b.WriteString(printable(at) + ": ")
	}
	if it.Name != "" {
		b.WriteString(printable(it.Name) + " ")
	}
	return b.String()
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(p.std.out, format+"\n", args...)
}

// dryRun prints what would happen and returns it for --json.
func (p *printer) dryRun(plan *intake.Plan) report {
	if p.json {
		return p.report(plan, nil)
	}
	c := plan.Counts()
	p.line("found %s   queue %s   known %s (free)   queued before %s   same content %s   refused %s",
		num(c.Found), num(c.ByStatus[intake.ToQueue]), num(c.ByStatus[intake.AlreadyDone]), num(c.ByStatus[intake.AlreadyQueued]),
		num(c.ByStatus[intake.SameContent]), num(c.ByStatus[intake.Refused]))
	p.line("units %s at most   %s", thousands(c.Units), p.money(c.Units))
	p.longer(c)
	if c.Resent > 0 {
		p.line("sent before, and billed again by --force: %s", uploads(c.Resent))
	}
	if plan.Request.NextID {
		p.line("audio_ids that are not known yet are allotted when it is queued")
	}
	p.line(nothingQueued)
	return report{}
}

func (p *printer) money(units int64) string {
	if p.cfg.Price == 0 {
		return "price unknown (--price-per-1000)"
	}
	return fmt.Sprintf("%s at %s/1000", dollars(cost(units, p.cfg.Price)), dollars(p.cfg.Price))
}

// dollars has cents, and four decimals below a dollar, where cents would lie.
func dollars(v float64) string {
	if v >= 1 || v == 0 {
		return fmt.Sprintf("$%.2f", v)
	}
	return fmt.Sprintf("$%.4f", v)
}

func cost(units int64, price float64) float64 { return float64(units) * price / 1000 }

func (p *printer) longer(c intake.Counts) {
	if c.LongClips > 0 {
		p.line("only the first 12 s count: %s longer", files(c.LongClips))
	}
}

// queued prints what Enqueue did.
func (p *printer) queued(plan *intake.Plan) {
	c := plan.Counts()
	parts := []string{num(c.ByStatus[intake.Queued]) + " queued"}
	for _, v := range []struct {
		verdict intake.Status
		text    string
	}{
		{intake.AlreadyQueued, "queued before (duplicates)"}, {intake.AlreadyDone, "known (free)"}, {intake.SameContent, "with the same content"},
		{intake.Refused, "refused"}, {intake.Failed, "failed"},
	} {
		if n := c.ByStatus[v.verdict]; n > 0 {
			parts = append(parts, num(n)+" "+v.text)
		}
	}
	group := ""
	if plan.Request.Group != "" {
		group = " in group " + plan.Request.Group
	}
	p.line("batch %s%s: %s; %s units at most, %s", plan.Batch, group, strings.Join(parts, ", "), thousands(c.Units), p.money(c.Units))
	p.longer(c)
	p.allotted(plan)
	switch {
	case p.wait || c.ByStatus[intake.Queued]+c.ByStatus[intake.AlreadyQueued] == 0:
	case plan.Request.Force:
		p.line("To see the results run the command with --wait and without --force, which would pay again.")
	default:
		p.line("To see the results run the same command with --wait: nothing is queued twice.")
	}
}

// allotted tells which file has which slot: AudD does not.
func (p *printer) allotted(plan *intake.Plan) {
	if !plan.Request.NextID {
		return
	}
	for i := range plan.Items {
		it := &plan.Items[i]
		id, ok := it.AudioID()
		if ok && it.Status != intake.ToQueue && it.Status != intake.Refused && it.Status != intake.Failed {
			p.line("audio_id %d  %s", id, printable(it.Name))
		}
	}
}

// interrupted reports an Enqueue that did not get through.
func (p *printer) interrupted(ctx context.Context, plan *intake.Plan, err error) error {
	c := plan.Counts()
	kept := c.ByStatus[intake.Queued]
	code := exitNone
	if kept > 0 {
		code = exitSome
	}
	if p.json {
		r := p.report(plan, nil)
		r.Interrupted = true
		if werr := p.write(r); werr != nil {
			return &failure{code, werr}
		}
	}
	if !p.json {
		p.allotted(plan)
	}
	what := err
	if ctx.Err() != nil {
		what = errors.New("stopped")
	}
	how := "run the same command again to go on, nothing is queued twice"
	if plan.Request.Force {
		how = "to go on force the rest only: what was done since would be paid for once more"
	}
	return &failure{code, fmt.Errorf("%w: %s of %s queued (batch %s) and kept; %s", what, num(kept), files(c.Found), plan.Batch, how)}
}

// row prints one result.
func (p *printer) row(r intake.Result) {
	if p.json {
		return
	}
	word, colour := string(r.Outcome), "32"
	if r.Verdict != tasks.Done {
		word, colour = string(r.Verdict), "31"
	} else if r.Outcome == tasks.NoMatch {
		colour = "33"
	}
	text := describe(r)
	if r.Cached {
		text = strings.TrimSpace(text + " (known, free)")
	}
	p.line("%s %s  %s", p.paint(fmt.Sprintf("%-9s", word), colour), printable(r.Name), printable(text))
}

func (p *printer) paint(s, colour string) string {
	if !p.colour {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

func (p *printer) results(rows []intake.Result) {
	if len(rows) == 0 {
		return
	}
	counts := map[string]int{}
	for _, r := range rows {
		word := string(r.Outcome)
		if r.Verdict != tasks.Done {
			word = string(r.Verdict)
		}
		counts[word]++
	}
	var parts []string
	for _, word := range []string{"match", "no_match", "not_released", "uploaded", "archive", "hold"} {
		if n := counts[word]; n > 0 {
			parts = append(parts, num(n)+" "+word)
		}
	}
	p.line("%s finished: %s", files(len(rows)), strings.Join(parts, ", "))
}

// finish writes the JSON report, if it is wanted, and ends with code.
func (p *printer) finish(r report, code int) error {
	if p.json {
		if err := p.write(r); err != nil {
			return err
		}
	}
	if code == exitOK {
		return nil
	}
	return &failure{code: code}
}

func (p *printer) write(r report) error { return writeJSON(p.std.out, r) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func num(n int) string { return thousands(int64(n)) }

func files(n int) string {
	if n == 1 {
		return "1 input"
	}
	return num(n) + " inputs"
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// printable keeps control characters of names and titles off the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
