// Command bench measures Reprise and prints ratios: `go run ./bench CASE`.
//
// A case starts the processes it needs, prints a table and, as the last line, one JSON object with its
// figures.
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
	"time"
)

// benchmark is one case.
type benchmark struct {
	about string // one line: the figures, and what they are compared with
	// new declares the flags of the case. The returned function runs after they are parsed.
	new       func(flags *flag.FlagSet) measurement
	mayBeZero []string // flags whose number may be 0; other numbers must be positive
}

// measurement measures with files in dir, and ends everything that it starts. A report that it returns beside
// an error is printed without its figures.
type measurement func(ctx context.Context, dir string) (report, error)

// cases are all benchmarks by name.
var cases = map[string]benchmark{
	"chaos-admission": {"workers killed again and again: units overspent, permits not released", newChaos, []string{"day-units"}},
	"e2e":             {"tasks a second of whole processes, HTTP and SQL included, against bare asynq", newE2E, nil},
	"e2e-bare":        {"the bare side of e2e; e2e starts it as a process", newBareProcess, nil},
	"goodput":         {"the used share of a quota, and the 429s on the way", newGoodput, []string{"warmup", "retry-after"}},
	"memory":          {"growth of a worker's memory by one large enterprise file", newMemory, nil},
	"overhead":        {"tasks a second through every gate, against bare asynq", newOverhead, nil},
	"store":           {"settlements a second, against plain inserts", newStore, nil},
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
	if err := c.run(ctx, args, stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(stderr, "bench: %s: %s\n", args[0], err)
		return 1
	}
	return 0
}

func printCases(out io.Writer) {
	var list report
	list.header = []string{"CASE", ""}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		list.rows = append(list.rows, []string{name, cases[name].about})
	}
	fmt.Fprintln(out, "usage: go run ./bench CASE [flags]   (CASE -h lists its flags)")
	_ = list.printTable(out) // a closed out cannot be reported
}

// run parses the flags behind the name of the case, measures in a new folder and prints the report.
func (b benchmark) run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("bench "+args[0], flag.ContinueOnError)
	flags.SetOutput(out)
	parent := flags.String("dir", os.TempDir(), "folder for files and databases")
	measure := b.new(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if err := b.checkNumbers(flags); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(*parent, "reprise-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the case: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := measure(ctx, dir)
	return errors.Join(err, r.print(out, err == nil))
}

// checkNumbers returns an error for each number that is out of range.
func (b benchmark) checkNumbers(flags *flag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *flag.Flag) {
		least := int64(1)
		if slices.Contains(b.mayBeZero, f.Name) {
			least = 0
		}
		number := least
		switch v := f.Value.(flag.Getter).Get().(type) { //nolint:forcetypeassert // every flag of package flag is a Getter
		case int:
			number = int64(v)
		case int64:
			number = v
		case time.Duration:
			number = int64(v)
		}
		if number < least {
			errs = append(errs, fmt.Errorf("--%s %s is too small", f.Name, f.Value))
		}
	})
	return errors.Join(errs...)
}
