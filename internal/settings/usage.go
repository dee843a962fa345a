package settings

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// flagLine is a flag of pflag's help: its name and type, and what it does.
var flagLine = regexp.MustCompile(`^( {2,6}-.*?) {3,}(\S.*)$`)

// PlainHelp makes the help of a command and of those below it plain (PlainFlags).
func PlainHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		defer cmd.SetOut(out)
		var text strings.Builder
		cmd.SetOut(&text)
		help(cmd, args)
		fmt.Fprint(out, PlainFlags(text.String()))
	})
}

// PlainFlags takes the "[=true|false]" out of a help text, which pflag puts
// behind every switch, and aligns the lines of each block of flags anew.
func PlainFlags(help string) string {
	lines := strings.Split(help, "\n")
	for from := 0; from < len(lines); from++ {
		to := from
		for to < len(lines) && flagLine.MatchString(lines[to]) {
			to++
		}
		if to > from {
			align(lines[from:to])
			from = to
		}
	}
	return strings.Join(lines, "\n")
}

func align(lines []string) {
	width := 0
	names, texts := make([]string, len(lines)), make([]string, len(lines))
	for i, line := range lines {
		parts := flagLine.FindStringSubmatch(line)
		names[i], texts[i] = strings.Replace(parts[1], "[=true|false]", "", 1), parts[2]
		width = max(width, utf8.RuneCountInString(names[i]))
	}
	for i := range lines {
		lines[i] = names[i] + strings.Repeat(" ", width-utf8.RuneCountInString(names[i])+3) + texts[i]
	}
}
