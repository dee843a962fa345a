package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// prepare sets the streams, the version and the help of a command line. A command that only has sub-commands prints its
// help.
func (g Program) prepare(root *cobra.Command, p *Process) {
	root.SetArgs(p.Args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = Version()
	help := func(cmd *cobra.Command) { fmt.Fprint(p.Out, g.helpText(cmd)) }
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(cmd) })
	for _, cmd := range append(root.Commands(), root) {
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				help(cmd)
				return &Error{Code: Usage}
			}
		}
	}
}

// helpText returns the help of a command, with examples first and exit codes last.
func (g Program) helpText(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString(cmd.Short + "\n")
	section := func(title, body string) {
		if body != "" {
			b.WriteString("\n" + title + strings.TrimRight(body, "\n") + "\n")
		}
	}
	section("Examples:\n", cmd.Example)
	section("", cmd.Long)
	var commands [][2]string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			commands = append(commands, [2]string{"  " + c.Name(), c.Short})
		}
	}
	usage := cmd.UseLine()
	if len(commands) > 0 {
		usage = cmd.CommandPath() + " COMMAND"
	}
	section("Usage:\n  ", usage)
	section("Commands:\n", columns(commands))
	section("Flags:\n", flagText(cmd.LocalFlags()))
	section("Flags of every command:\n", flagText(cmd.InheritedFlags()))
	var codes [][2]string
	for _, c := range g.ExitCodes {
		codes = append(codes, [2]string{fmt.Sprintf("  %d", c.Code), c.Meaning})
	}
	section("Exit codes:\n", columns(codes))
	return b.String()
}

// flagText lists flags as pflag does, but without its "[=true|false]" after switches.
func flagText(flags *pflag.FlagSet) string {
	var rows [][2]string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "      --" + f.Name
		if f.Shorthand != "" {
			name = "  -" + f.Shorthand + ", --" + f.Name
		}
		kind, usage := pflag.UnquoteUsage(f)
		if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			value := f.DefValue
			if kind == "string" {
				value = fmt.Sprintf("%q", value)
			}
			usage += " (default " + value + ")"
		}
		rows = append(rows, [2]string{strings.TrimRight(name+" "+kind, " "), usage})
	})
	return columns(rows)
}

func columns(rows [][2]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\n", r[0], r[1])
	}
	_ = w.Flush() // writing to a strings.Builder cannot fail
	return b.String()
}
