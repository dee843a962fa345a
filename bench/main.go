// Command bench measures Reprise and prints ratios: `go run ./bench CASE`.
//
// Each case starts what it needs itself, repeats enough to be steady, prints a
// table for people and, as the last line, one JSON object with its figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
)

// benchmark is one case. run parses its own flags from args (newFlags), prints
// to out (printTable, then printFigures) and leaves nothing running.
type benchmark struct {
	about string // one line: what is compared with what
	run   func(ctx context.Context, args []string, out io.Writer) error
}

// cases are all benchmarks by name; each lives in a file of its own.
var cases = map[string]benchmark{
	"chaos-admission": {"workers killed again and again: what is overspent, which permits are not given back", benchChaosAdmission},
	"e2e":             {"tasks a second of whole processes, HTTP and SQL included, and their share of what bare asynq does", benchE2E},
	"e2e-bare":        {"the bare side of e2e, which e2e starts as a process of its own", benchBareProcess},
	"goodput":         {"how much of a quota is used, and how many 429s it takes", benchGoodput},
	"memory":          {"what one large enterprise file adds to a worker's memory", benchMemory},
	"overhead":        {"tasks a second through every gate, and their share of what bare asynq does", benchOverhead},
	"store":           {"settlements a second, and their share of what the bare database takes", benchStore},
}

func main() { os.Exit(runUntilSignal()) }

func runUntilSignal() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		printCases(stdout)
		return 0
	}
	c, known := cases[args[0]]
	if !known {
		fmt.Fprintf(stderr, "bench: there is no case %q\n", args[0])
		printCases(stderr)
		return 1
	}
	err := c.run(ctx, args[1:], stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "bench: %s: %s\n", args[0], err)
		return 1
	}
	return 0
}

func printCases(out io.Writer) {
	fmt.Fprintln(out, "usage: go run ./bench CASE [flags]   (CASE -h lists its flags)")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		fmt.Fprintf(w, "  %s\t%s\n", name, cases[name].about)
	}
	_ = w.Flush() // stdout gone: nobody to tell
}
