// Command bench measures Reprise and prints ratios: `go run ./bench CASE`.
//
// A case starts the processes it needs, prints a table and, as the last line, one
// JSON object with its figures.
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
)

// benchmark is one case. run parses its own flags from args (newFlags), prints
// to out (printTable, then printFigures) and ends everything that it starts.
type benchmark struct {
	about string // one line: the figures, and what they are compared with
	run   func(ctx context.Context, args []string, out io.Writer) error
}

// cases are all benchmarks by name.
var cases = map[string]benchmark{
	"chaos-admission": {"workers killed again and again: units overspent, permits not released", benchChaosAdmission},
	"e2e":             {"tasks a second of whole processes, HTTP and SQL included, against bare asynq", benchE2E},
	"e2e-bare":        {"the bare side of e2e; e2e starts it as a process", benchBareProcess},
	"goodput":         {"the used share of a quota, and the 429s on the way", benchGoodput},
	"memory":          {"growth of a worker's memory by one large enterprise file", benchMemory},
	"overhead":        {"tasks a second through every gate, against bare asynq", benchOverhead},
	"store":           {"settlements a second, against plain inserts", benchStore},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		printCases(stdout)
		return 0
	}
	c, known := cases[args[0]]
	if !known {
		fmt.Fprintf(stderr, "bench: unknown case %q\n", args[0])
		printCases(stderr)
		return 1
	}
	if err := c.run(ctx, args[1:], stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(stderr, "bench: %s: %s\n", args[0], err)
		return 1
	}
	return 0
}

func printCases(out io.Writer) {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		rows = append(rows, []string{name, cases[name].about})
	}
	fmt.Fprintln(out, "usage: go run ./bench CASE [flags]   (CASE -h lists its flags)")
	_ = printTable(out, []string{"CASE", ""}, rows) // a closed out cannot be reported
}
