package main

import (
	"io"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
)

// Exit codes.
const (
	exitRefused = cli.Failed
	exitUsage   = cli.Usage
	exitSome    = cli.Partial
)

// program is the command inspect.
var program = cli.Program{
	Failed: exitRefused, Interrupted: 130,
	New: func(p *cli.Process) *cobra.Command {
		return newRoot(&app{process: p, getenv: p.Getenv, std: stdio{p.In, p.Out, p.Err}})
	},
	ExitCodes: []cli.ExitCode{
		{Code: cli.OK, Meaning: "done"},
		{Code: exitRefused, Meaning: "Redis or the store could not be reached, or the request was refused"},
		{Code: exitUsage, Meaning: "wrong usage or settings; nothing was done"},
		{Code: exitSome, Meaning: "some of it failed"},
	},
}

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// failure is an error with its exit code.
type failure = cli.Error

// usage is an error in the command line or the settings.
func usage(format string, args ...any) error { return cli.Errorf(exitUsage, format, args...) }

// refused is an error about a request that cannot be carried out.
func refused(format string, args ...any) error { return cli.Errorf(exitRefused, format, args...) }

// unusable gives errors of Redis and the store their exit code.
func unusable(err error) error { return cli.WithCode(exitRefused, err) }

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "inspect",
		Short: "Look at queues, gates, tasks and costs, and act on them",
		Example: `  inspect queues                              # what waits, what is paused and why
  inspect why clips/a.mp3                     # what does this one wait for?
  inspect limits set main/recognize.concurrency=20`,
		Args: cobra.NoArgs,
	}
	a.flags(root.PersistentFlags())
	root.AddCommand(newWhy(a), newQueues(a), newPause(a), newResume(a), newHalts(a), newHalt(a), newSources(a), newLimits(a), newGroup(a),
		newTasks(a), newArchive(a), newReplay(a), newResults(a), newCosts(a), newUploads(a))
	return root
}
