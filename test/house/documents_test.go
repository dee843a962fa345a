package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pages are the documents whose commands and links are checked.
func pages(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(files(t), func(name string) bool { return filepath.Ext(name) != ".md" })
}

var (
	fence    = regexp.MustCompile("(?s)```(?:sh|console)\n(.*?)```")
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	link     = regexp.MustCompile(`\]\(([^)#\s]+)[^)\s]*\)`)
)

// commandLines returns the commands in a page: the lines of its sh blocks, in
// console blocks those after "$ ", and its code spans.
func commandLines(page string) []string {
	var found []string
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		console := strings.Contains(block[1], "$ ")
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			command, prompt := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			command, _, _ = strings.Cut(command, "  #")
			if command != "" && !strings.HasPrefix(command, "#") && (prompt || !console) {
				found = append(found, command)
			}
		}
	}
	for _, span := range codeSpan.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		found = append(found, span[1])
	}
	return found
}

// ours splits a command line that runs a command of this tree, without leading
// VAR=value words and a final `&`.
func ours(line string) (binary string, args []string) {
	words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), "&"))
	for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	if len(words) > 2 && words[0] == "go" && words[1] == "run" && strings.HasPrefix(words[2], "./cmd/") {
		return strings.TrimPrefix(words[2], "./cmd/"), words[3:]
	}
	if len(words) > 1 && strings.HasPrefix(words[0], "bin/") {
		return strings.TrimPrefix(words[0], "bin/"), words[1:]
	}
	if len(words) > 1 && slices.Contains([]string{"worker", "enqueue", "inspect", "auddsim"}, words[0]) && !strings.Contains(words[1], "=") {
		return words[0], words[1:]
	}
	return "", nil
}

func TestEveryMakeTargetInTheDocumentsExists(t *testing.T) {
	t.Parallel()
	makefile := string(read(t, "Makefile"))
	named := regexp.MustCompile(`^make ([a-z][a-z-]*)`)
	count := 0
	for _, name := range pages(t) {
		for _, line := range commandLines(string(read(t, name))) {
			if m := named.FindStringSubmatch(line); m != nil {
				count++
				require.Regexpf(t, `(?m)^`+m[1]+`:`, makefile, "%s has `%s`", name, line)
			}
		}
	}
	require.Positive(t, count, "make commands in the documents")
}

func TestEveryMakeTargetIsInMakeHelp(t *testing.T) {
	t.Parallel()
	makefile := string(read(t, "Makefile"))
	for _, target := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(makefile, -1) {
		require.Regexp(t, `(?m)^`+target[1]+`:.*## .`, makefile, "make help would not show it")
	}
}

func TestEveryCommandInTheDocumentsExists(t *testing.T) {
	t.Parallel()
	for _, name := range pages(t) {
		if name == "CHANGELOG.md" {
			continue // describes past versions
		}
		for _, line := range commandLines(string(read(t, name))) {
			binary, args := ours(line)
			if binary == "" {
				continue
			}
			help := helpOf(t, binary, args)
			for _, word := range args {
				flag, _, _ := strings.Cut(word, "=")
				if strings.HasPrefix(flag, "--") && len(flag) > 2 && !strings.Contains(help, flag) {
					t.Errorf("%s has `%s`, but %s has no flag %s:\n%s", name, line, binary, flag, help)
				}
			}
		}
	}
}

func TestLinksBetweenDocumentsExist(t *testing.T) {
	t.Parallel()
	for _, name := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(string(read(t, name)), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := filepath.Join(root(t), filepath.Dir(name), m[1])
			_, err := os.Stat(target)
			require.NoErrorf(t, err, "%s links to %s", name, m[1])
		}
	}
}

// helpOf returns the output of `binary sub-command --help` and fails the test if
// there is no such sub-command.
func helpOf(t *testing.T, binary string, args []string) string {
	t.Helper()
	sub := []string{}
	for _, word := range args {
		if strings.HasPrefix(word, "-") || !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(word) {
			break
		}
		sub = append(sub, word)
	}
	out, err := exec.CommandContext(t.Context(), command(t, binary), append(sub, "--help")...).CombinedOutput()
	require.NoErrorf(t, err, "%s %s --help:\n%s", binary, strings.Join(sub, " "), out)
	if len(sub) > 0 {
		require.Containsf(t, string(out), sub[0], "%s has no sub-command %s", binary, sub[0])
	}
	return string(out)
}
