package cli

import (
	"time"

	"reprise/internal/text"
)

// Times writes moments in a time zone, relative to a moment.
type Times = text.Times

// Thousands writes 1234567 as 1,234,567.
func Thousands[N int | int64](n N) string { return text.Thousands(n) }

// Count is "1 task" or "2,000 tasks".
func Count[N int | int64](n N, one, many string) string { return text.Count(n, one, many) }

// Dollars writes an amount with cents, below a dollar with four decimals.
func Dollars(v float64) string { return text.Dollars(v) }

// Share writes a part of a whole in per cent, "–" when the whole is 0.
func Share(part, whole int64) string { return text.Share(part, whole) }

// Span writes a duration in one or two units: 45 s, 12 min, 3 h 20 min, 2 d 4 h.
func Span(d time.Duration) string { return text.Span(d) }

// Printable replaces control characters, so that names cannot control the terminal.
func Printable(s string) string { return text.Printable(s) }

// Short cuts a text to n characters, the last of them "…".
func Short(s string, n int) string { return text.Short(s, n) }
