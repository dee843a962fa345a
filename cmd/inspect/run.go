package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/redisconn"
	"reprise/internal/settings"
)

// Exit codes; exitCodes below explains them to users.
const (
	exitOK      = 0
	exitRefused = 1
	exitUsage   = 2
	exitSome    = 3
)

const exitCodes = `Exit codes:
  0  done
  1  Redis or the store could not be reached, or what was asked for was refused
  2  wrong usage or settings; nothing was done
  3  some of it failed`

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// failure is an error with its exit code. A nil err was reported already.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}
func (f *failure) Unwrap() error { return f.err }

// usage is a failure of the one who typed the command.
func usage(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// refused says that what was asked for cannot be done as things stand.
func refused(format string, args ...any) error {
	return &failure{exitRefused, fmt.Errorf(format, args...)}
}

// unusable marks an error that a command met: Redis or the store.
func unusable(err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &failure{exitRefused, err}
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args, environ []string, std stdio) int {
	redisconn.SetLogger(nil)
	root := newRoot(&app{environ: environ, getenv: settings.Getenv(environ), std: std})
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var f *failure
	if !errors.As(err, &f) { // cobra's own: unknown flags, missing arguments
		f = &failure{exitUsage, err}
	}
	if f.err != nil {
		fmt.Fprintf(std.err, "inspect: %s\n", sentence(f.err))
	}
	if f.code == exitUsage {
		fmt.Fprintln(std.err, "Run 'inspect --help' for usage.")
	}
	return f.code
}

// sentence is an error for people: joined errors in one line.
func sentence(err error) string { return strings.Join(strings.Split(err.Error(), "\n"), "; ") }

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "inspect",
		Short: "Look at queues, gates, tasks and costs, and act on them",
		Example: `  inspect queues                              # what waits, what is paused and why
  inspect why clips/a.mp3                     # what does this one wait for?
  inspect limits set main/recognize.concurrency=20`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          helpOnly,
	}
	root.SetHelpTemplate(helpTemplate)
	settings.PlainHelp(root)
	a.flags(root.PersistentFlags())
	root.AddCommand(newWhy(a), newQueues(a), newPause(a), newResume(a), newHalts(a), newHalt(a), newSources(a), newLimits(a), newGroup(a),
		newTasks(a), newArchive(a), newReplay(a), newResults(a), newCosts(a), newUploads(a))
	return root
}

// helpOnly is the RunE of a command that only has sub-commands.
func helpOnly(cmd *cobra.Command, _ []string) error {
	if err := cmd.Help(); err != nil {
		return err
	}
	return &failure{code: exitUsage}
}

// helpTemplate shows examples first and exit codes last.
const helpTemplate = `{{.Short}}

{{if .HasExample}}Examples:
{{.Example}}

{{end}}{{with .Long}}{{.}}

{{end}}Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{if .HasAvailableSubCommands}}
Commands:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}{{if .HasAvailableLocalFlags}}
Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasAvailableInheritedFlags}}
Flags of every command:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}
` + exitCodes + "\n"
