// Command worker runs recognition jobs: `worker run` on an existing Redis, `worker dev` with all it needs in one
// process.
package main

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/settings"
)

func main() { program.Main() }

var program = cli.Program{
	New:    func(p *cli.Process) *cobra.Command { return newRoot(app{p}) },
	Failed: cli.Failed, Interrupted: cli.Unclean,
	ExitCodes: []cli.ExitCode{
		{Code: cli.OK, Meaning: "stopped cleanly"},
		{Code: cli.Failed, Meaning: "could not start, or a check failed"},
		{Code: cli.Unclean, Meaning: "wrong usage, or stopped with work left undone"},
	},
}

// app is the process that every sub-command uses.
type app struct{ *cli.Process }

func newRoot(a app) *cobra.Command {
	root := &cobra.Command{
		Use:   "worker",
		Short: "Run AudD recognition jobs from a durable queue",
		Example: `  worker dev --exit                             # try everything once, no account needed
  REPRISE_REDIS_URL=redis://127.0.0.1:6379 REPRISE_STORE_URL=sqlite:reprise.db AUDD_API_TOKEN=… worker run
  worker config                                 # print the settings in force`,
	}
	root.AddCommand(a.runCommand(), a.devCommand(), a.configCommand(), a.checkCommand(), a.backupCommand())
	for _, cmd := range root.Commands() {
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("%w: choose another address with --admin (%s)", err, settings.EnvName("admin.addr"))
			}
			return err
		}
	}
	return root
}

// closers close what a command has opened, last in, first out.
type closers []func() error

func (c *closers) add(what string, run func() error) {
	*c = append(*c, func() error {
		if err := run(); err != nil {
			return fmt.Errorf("stop %s: %w", what, err)
		}
		return nil
	})
}

// close closes everything and returns runErr, or an error of closing with the code Unclean.
func (c *closers) close(runErr error) error {
	var errs []error
	for _, run := range slices.Backward(*c) {
		errs = append(errs, run())
	}
	if runErr != nil {
		return runErr
	}
	return cli.WithCode(cli.Unclean, errors.Join(errs...))
}
