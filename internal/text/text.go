// Package text formats numbers, durations and times for an operator, and finds the known word nearest to a typo. The
// commands and the sentences of package ops share it.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Thousands formats 1234567 as 1,234,567.
func Thousands[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count returns "1 task" or "2,000 tasks".
func Count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}

// Dollars formats an amount with cents, and an amount below one dollar with four decimals.
func Dollars(v float64) string {
	if v != 0 && v < 1 {
		return fmt.Sprintf("$%.4f", v)
	}
	cents := int64(v*100 + 0.5)
	return fmt.Sprintf("$%s.%02d", Thousands(cents/100), cents%100)
}

// Share returns a part of a whole in per cent, "–" if the whole is 0.
func Share(part, whole int64) string {
	if whole <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", float64(part)*100/float64(whole))
}

// Span formats a duration in one or two units: 45 s, 12 min, 3 h 20 min, 2 d 4 h.
func Span(d time.Duration) string {
	if d = max(d, 0); d >= 59*time.Second+time.Second/2 {
		d = d.Round(time.Minute)
	}
	pair := func(large int, unit string, small int, smallUnit string) string {
		if small == 0 {
			return fmt.Sprintf("%d %s", large, unit)
		}
		return fmt.Sprintf("%d %s %d %s", large, unit, small, smallUnit)
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

// Times formats times in a time zone, relative to Now.
type Times struct {
	Zone *time.Location
	Now  time.Time
}

// At returns the time of day, and the date if t is half a day or more away; "never" for the zero time.
func (f Times) At(t time.Time) string {
	switch away := t.Sub(f.Now).Abs(); {
	case t.IsZero():
		return "never"
	case away < 12*time.Hour:
		return t.In(f.Zone).Format("15:04:05")
	}
	return t.In(f.Zone).Format("2006-01-02 15:04")
}

// Since returns "14:32:05 (3 h ago)", or "never" for the zero time.
func (f Times) Since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return fmt.Sprintf("%s (%s ago)", f.At(t), Span(f.Now.Sub(t)))
}

// Until returns "14:32:05 (in 3 min)", or "any moment" if t has passed.
func (f Times) Until(t time.Time) string {
	if !t.After(f.Now) {
		return "any moment"
	}
	return fmt.Sprintf("%s (in %s)", f.At(t), Span(t.Sub(f.Now)))
}

// Printable replaces control characters, so that a name cannot control the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Short cuts a text to n characters. The last one is then "…".
func Short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
