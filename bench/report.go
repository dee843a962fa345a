package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// newFlags is the flag set of a case; its help goes where the results go.
func newFlags(name string, out io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	flags.SetOutput(out)
	return flags
}

// printTable prints rows under a header, in columns.
func printTable(out io.Writer, header []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range slices.Concat([][]string{header}, rows) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// printFigures prints the figures as one line of JSON, which is the last line
// of every case.
func printFigures(out io.Writer, figures any) error {
	if err := json.NewEncoder(out).Encode(figures); err != nil {
		return fmt.Errorf("print figures: %w", err)
	}
	return nil
}

// median is the middle value; of an even number, the mean of the middle two.
// It is 0 of nothing.
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
