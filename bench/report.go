package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is the result of a case; the zero value prints nothing.
type report struct {
	header  []string
	rows    [][]string
	figures map[string]float64
}

// print prints the table and, if figures is set, the figures as one line of JSON.
func (r report) print(out io.Writer, figures bool) error {
	if len(r.header) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range slices.Concat([][]string{r.header}, r.rows) {
		row = append(row, make([]string, len(r.header)-len(row))...) // a short row would end the column
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	if !figures {
		return nil
	}
	if err := json.NewEncoder(out).Encode(r.figures); err != nil {
		return fmt.Errorf("print figures: %w", err)
	}
	return nil
}

// median returns the middle value, or the mean of the middle two; 0 without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// pace is the rate of one side of a comparison. The CPU times per operation include the side's Redis; they
// depend less on other load than the rate.
type pace struct {
	perS           float64
	ownUS, redisUS float64 // 0 = not measured
}

type comparison struct {
	ours, bare, ratios []float64
	rows               [][]string
}

// compare measures both sides for so many rounds.
func compare(rounds int, ours, bare func() (pace, error)) (c comparison, err error) {
	for err == nil && len(c.ratios) < rounds {
		err = c.round(ours, bare)
	}
	return c, err
}

// round measures both sides, in alternating order, so that other load on the machine affects both alike.
func (c *comparison) round(ours, bare func() (pace, error)) error {
	sides, n := []func() (pace, error){ours, bare}, len(c.ratios)
	var paces [2]pace
	for i := range sides {
		side := (i + n) % 2
		var err error
		if paces[side], err = sides[side](); err != nil {
			return err
		}
	}
	a, b := paces[0], paces[1]
	c.ours, c.bare, c.ratios = append(c.ours, a.perS), append(c.bare, b.perS), append(c.ratios, a.perS/b.perS)
	row := comparisonRow(fmt.Sprint(n+1), a.perS, b.perS, a.perS/b.perS)
	if a.ownUS > 0 {
		row = append(row, fmt.Sprintf("%.0f + %.0f", a.ownUS, a.redisUS), fmt.Sprintf("%.0f + %.0f", b.ownUS, b.redisUS), loadAverage())
	}
	c.rows = append(c.rows, row)
	return nil
}

// costColumns are the headings of the columns that round adds for CPU times.
var costColumns = []string{"µs of CPU per task: reprise + its redis", "bare + its redis", "load"}

// medians returns the medians of both rates, and the median of the rounds' ratios rather than the ratio of
// the medians.
func (c *comparison) medians() (ours, bare, ratio float64) {
	return median(c.ours), median(c.bare), median(c.ratios)
}

func (c *comparison) table() [][]string {
	return append(c.rows, comparisonRow("median", median(c.ours), median(c.bare), median(c.ratios)))
}

func comparisonRow(name string, ours, bare, ratio float64) []string {
	return []string{name, fmt.Sprintf("%.0f", ours), fmt.Sprintf("%.0f", bare), fmt.Sprintf("%.3f", ratio)}
}

// loadAverage returns the load average of the machine over one minute; empty without /proc.
func loadAverage() string {
	raw, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(raw), " ")
	return load
}
