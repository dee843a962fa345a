// Command bench measures Reprise and prints ratios: `go run ./bench CASE`.
//
// A case starts the processes it needs, prints a table and, as the last line, one JSON object with its
// figures.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/cli"
)

type benchmark struct {
	about string // one line: the figures, and what they are compared with
	// new declares the flags of the case. The returned function runs after they are parsed.
	new       func(flags *pflag.FlagSet) measurement
	mayBeZero []string // flags whose number may be 0; other numbers must be positive
}

// measurement measures with files in dir, and ends everything that it starts. A report that it returns beside
// an error is printed without its figures.
type measurement func(ctx context.Context, dir string) (report, error)

var cases = map[string]benchmark{
	"chaos-admission": {"Kill workers repeatedly: units overspent, permits not released", newChaos, []string{"day-units"}},
	"e2e":             {"Tasks a second of whole processes, HTTP and SQL included, against bare asynq", newE2E, nil},
	"e2e-bare":        {"The bare side of e2e, which e2e starts as a process", newBareProcess, nil},
	"goodput":         {"The used share of a quota, and the 429s on the way", newGoodput, []string{"warmup", "retry-after"}},
	"memory":          {"Growth of a worker's memory by one large enterprise file", newMemory, nil},
	"overhead":        {"Tasks a second through every gate, against bare asynq", newOverhead, nil},
	"store":           {"Settlements a second, against plain inserts", newStore, nil},
}

func main() { program.Main() }

var program = cli.Program{
	New: newRoot, Failed: cli.Failed, Interrupted: 130,
	ExitCodes: []cli.ExitCode{
		{Code: cli.OK, Meaning: "measured"}, {Code: cli.Failed, Meaning: "a case failed"}, {Code: cli.Usage, Meaning: "wrong usage"},
	},
}

func newRoot(*cli.Process) *cobra.Command {
	root := &cobra.Command{Use: "bench", Short: "Measure Reprise and print ratios"}
	for name, b := range cases {
		root.AddCommand(b.command(name))
	}
	return root
}

func (b benchmark) command(name string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: b.about, Args: cobra.NoArgs}
	parent := cmd.Flags().String("dir", os.TempDir(), "folder for files and databases")
	measure := b.new(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := b.checkNumbers(cmd.Flags()); err != nil {
			return err
		}
		dir, err := os.MkdirTemp(*parent, "reprise-bench-")
		if err != nil {
			return fmt.Errorf("make a folder for the case: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		r, err := measure(cmd.Context(), dir)
		return errors.Join(err, r.print(cmd.OutOrStdout(), err == nil))
	}
	return cmd
}

// checkNumbers returns an error for each number that is out of range.
func (b benchmark) checkNumbers(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		value := f.Value.String()
		zero := value == "0" || value == "0s"
		if f.Value.Type() != "string" && (value[0] == '-' || zero && !slices.Contains(b.mayBeZero, f.Name)) {
			errs = append(errs, cli.Errorf(cli.Usage, "--%s %s is too small", f.Name, value))
		}
	})
	return errors.Join(errs...)
}
