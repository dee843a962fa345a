package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reprise/internal/redisconn"
	"reprise/internal/settings"
)

// Exit codes; exitCodes below explains them to users.
const (
	exitOK    = 0
	exitUsage = 2
	exitSome  = 3
	exitNone  = 4
)

const exitCodes = `Exit codes:
  0  every input is queued, known or, with --wait, done
  2  wrong usage or settings; nothing was done
  3  some inputs failed, or it was interrupted after some were queued
  4  no input could be queued or, with --wait, none was done`

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
		fmt.Fprintf(std.err, "enqueue: %s\n", f.err.Error())
	}
	if f.code == exitUsage {
		fmt.Fprintln(std.err, "Run 'enqueue --help' for usage.")
	}
	return f.code
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "enqueue",
		Short: "Put audio into the recognition queue",
		Example: `  enqueue recognize clips/ --dry-run          # what would it cost? costs nothing
  enqueue recognize clips/*.mp3 --wait        # queue and print the results
  find . -name '*.wav' | enqueue recognize -  # a list on standard input`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.Help(); err != nil {
				return err
			}
			return &failure{code: exitUsage}
		},
	}
	root.SetHelpTemplate(helpTemplate)
	settings.PlainHelp(root)
	a.flags(root.PersistentFlags())
	root.AddCommand(newRecognize(a), newEnterprise(a), newUpload(a))
	return root
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
