package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func thousandsOr(n int64, zero string) string {
	if n == 0 {
		return zero
	}
	return thousands(n)
}

// count is "1 task", "2,000 tasks".
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(int64(n)) + " " + many
}

// span writes a duration with the one or two units people read: 45 s, 12 min,
// 3 h 20 min, 2 d 4 h.
func span(d time.Duration) string {
	if d = max(d, 0); d >= 59*time.Second+time.Second/2 {
		d = d.Round(time.Minute)
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		return pair(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	}
	return pair(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
}

func pair(a int, unit string, b int, small string) string {
	if b == 0 {
		return fmt.Sprintf("%d %s", a, unit)
	}
	return fmt.Sprintf("%d %s %d %s", a, unit, b, small)
}

// clock writes a moment: the time alone when it is within half a day.
func (a *app) clock(t time.Time) string {
	switch until := time.Until(t); {
	case t.IsZero():
		return "never"
	case until > -12*time.Hour && until < 12*time.Hour:
		return t.In(a.zone).Format("15:04:05")
	}
	return t.In(a.zone).Format("2006-01-02 15:04")
}

// since is "14:32:05 (3 h ago)".
func (a *app) since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return fmt.Sprintf("%s (%s ago)", a.clock(t), span(time.Since(t)))
}

// until is "14:32:05 (in 3 min)", or "any moment".
func (a *app) until(t time.Time) string {
	wait := time.Until(t)
	if wait <= 0 {
		return "any moment"
	}
	return fmt.Sprintf("%s (in %s)", a.clock(t), span(wait))
}

// stamp is a moment for JSON, nil for none.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// share writes a part of a whole in per cent.
func share(part, whole int64) string {
	if whole <= 0 {
		return "–"
	}
	return strconv.FormatFloat(float64(part)*100/float64(whole), 'f', 0, 64) + " %"
}

// printable keeps control characters of names and reasons off the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// words undoes how admission keeps a person's words: joined by underscores.
func words(s string) string { return printable(strings.ReplaceAll(s, "_", " ")) }

// short cuts a text to n characters.
func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
