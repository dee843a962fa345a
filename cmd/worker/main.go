// Command worker runs recognition jobs: `worker run` against a Redis of yours,
// `worker dev` with everything it needs in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"reprise/internal/settings"
)

// Exit codes.
const (
	exitClean   = 0
	exitNoStart = 1
	exitUsage   = 2 // as enqueue and inspect
	exitUnclean = 2
)

func main() {
	ctx, _ := signalled(context.Background(), os.Exit) // listens to the end: a second signal counts until then
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// signalled ends ctx at the first SIGINT or SIGTERM. A second one exits at
// once: what was in flight is charged already and found at its redelivery.
func signalled(parent context.Context, exit func(int)) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		cancel()
		if _, ok := <-signals; ok {
			exit(exitUnclean)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// app is what every sub-command gets.
type app struct {
	environ        []string // as os.Environ gives it
	getenv         func(string) string
	stdout, stderr io.Writer
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	a := app{environ: environ, getenv: settings.Getenv(environ), stdout: stdout, stderr: stderr}
	understood := false
	root := &cobra.Command{
		Use:   "worker",
		Short: "Run AudD recognition jobs from a durable queue",
		Example: `  worker dev --exit                             try everything once, no account needed (costs nothing)
  REPRISE_REDIS_URL=redis://127.0.0.1:6379 REPRISE_STORE_URL=sqlite:reprise.db AUDD_API_TOKEN=… worker run
  worker config                                 print the settings in force, secrets masked`,
		Long: `Run AudD recognition jobs from a durable queue.

Exit codes: 0 stopped cleanly, 1 could not start, 2 wrong usage or stopped uncleanly.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		// Runs when the command line has been understood.
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { understood = cmd.HasParent() },
		Args:             cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.Help(); err != nil {
				return err
			}
			return errors.New("want a command")
		},
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	settings.PlainHelp(root)
	root.AddCommand(a.runCommand(), a.devCommand(), a.configCommand(), a.checkCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitClean
	}
	hint := ""
	if errors.Is(err, syscall.EADDRINUSE) {
		hint = ": choose another with --admin (" + settings.EnvName("admin.addr") + ")"
	}
	fmt.Fprintf(stderr, "worker: %s%s\n", sentence(err), hint)
	if !understood {
		fmt.Fprintln(stderr, "Run 'worker --help' for usage.")
		return exitUsage
	}
	if _, ok := errors.AsType[*uncleanError](err); ok {
		return exitUnclean
	}
	return exitNoStart
}

// uncleanError marks an end that left something undone.
type uncleanError struct{ err error }

func (e *uncleanError) Error() string { return e.err.Error() }
func (e *uncleanError) Unwrap() error { return e.err }
