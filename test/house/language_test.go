package house

import (
	"bufio"
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The words and names below are written in two parts, so that this file does
// not match itself.
var (
	// retired are words that this project once used for something that has a
	// common name: fixed, typo, cordoned, lost, failed for good, unsaved, retrying.
	retired = regexp.MustCompile(`(?i)\b(` + strings.Join([]string{
		"men" + "d", "men" + "ds", "men" + "ded", "slip of the " + "pen", "sit" + "out", "mour" + "n", "mour" + "ned", "mour" + "ns",
		"frai" + "l", "hope" + "less", "home" + "less", "patient" + "ly", "unti" + "ll", "shut" + "ter",
	}, "|") + `)\b`)

	// absent are references to documents that are not in this repository.
	absent = regexp.MustCompile(`(?i)\bspec R\d+|\(R\d+\)|\b(` + strings.Join([]string{
		"hou" + "se", "gloss" + "ary", "admis" + "sion", "asy" + "nq", "audd-" + "api", "u" + "x", "sp" + "ec",
	}, "|") + `)\.md\b`)
)

func TestTextContainsNoRetiredTerm(t *testing.T) {
	t.Parallel()
	forEachLine(t, func(where, line string) {
		if word := retired.FindString(line); word != "" {
			t.Errorf("%s: %q: use the common word, such as fix, typo, cordon, lost, permanent, unsaved, retrying or until", where, word)
		}
	})
}

func TestTextRefersOnlyToDocumentsOfThisRepository(t *testing.T) {
	t.Parallel()
	forEachLine(t, func(where, line string) {
		if name := absent.FindString(line); name != "" {
			t.Errorf("%s: %q is not in this repository: link a page of docs/adr or state the reason", where, name)
		}
	})
}

// forEachLine calls check with every line of the source files and documents.
func forEachLine(t *testing.T, check func(where, line string)) {
	t.Helper()
	kinds := []string{".go", ".lua", ".sql", ".md", ".yml", ".yaml", ".txtar"}
	for _, name := range files(t) {
		if !slices.Contains(kinds, filepath.Ext(name)) {
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(read(t, name)))
		lines.Buffer(nil, 10<<20)
		for lines.Scan() {
			check(name, lines.Text())
		}
		require.NoError(t, lines.Err(), name)
	}
}
