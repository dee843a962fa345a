package house

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// files returns the files of the tree relative to its root: those that git
// tracks or, in an unpacked archive, all.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	cmd.Dir = root(t)
	if out, err := cmd.Output(); err == nil {
		names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
		return slices.DeleteFunc(names, func(name string) bool { // deleted, not yet committed
			_, err := os.Stat(filepath.Join(root(t), name))
			return err != nil
		})
	}
	var names []string
	err := fs.WalkDir(os.DirFS(root(t)), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(path, "bin/") {
			names = append(names, path)
		}
		return err
	})
	require.NoError(t, err)
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(t), name))
	require.NoError(t, err)
	return raw
}

func TestNoFolderHasAGenericName(t *testing.T) {
	t.Parallel()
	empty := regexp.MustCompile(`(^|/)(utils?|common|helpers?|models?|managers?|misc|shared|config)(/|\.go$)`)
	for _, name := range files(t) {
		if filepath.Ext(name) == ".go" && empty.MatchString(filepath.Dir(name)+"/") {
			t.Errorf("%s: the name of the folder says nothing about its content", name)
		}
	}
}

func TestNoBannedFunctionIsCalled(t *testing.T) {
	t.Parallel()
	for _, name := range files(t) {
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, read(t, name), parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, call := range selectors(file) {
			for _, ban := range callBans {
				bound := len(ban.rooms) == 0 || within(name, ban.rooms)
				exempt := slices.ContainsFunc(ban.except, func(p string) bool { return strings.HasPrefix(name, p) })
				if bound && !exempt && slices.Contains(ban.calls, call.name) {
					t.Errorf("%s: %s: %s", fset.Position(call.pos), call.name, ban.why)
				}
			}
		}
	}
}

type selector struct {
	name string // pkg.Ident, where pkg is the last part of the import path
	pos  token.Pos
}

// selectors returns the uses of imported packages in a file, with aliases resolved.
func selectors(file *ast.File) []selector {
	imported := map[string]string{} // local name → last part of the path
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			continue
		}
		base := filepath.Base(strings.TrimSuffix(path, "/v2"))
		local := base
		if imp.Name != nil {
			local = imp.Name.Name
		}
		imported[local] = base
	}
	var found []selector
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && imported[x.Name] != "" {
				found = append(found, selector{imported[x.Name] + "." + sel.Sel.Name, sel.Pos()})
			}
		}
		return true
	})
	return found
}

func TestTreeContainsNoMachinePathAndNoRegistryHost(t *testing.T) {
	t.Parallel()
	// In two parts, so that this file does not match.
	banned := regexp.MustCompile(strings.Join([]string{
		`(^|[\s"'=(:])/` + `(work|root)/`,
		`proxy\.golang` + `\.org`, `sum\.golang` + `\.org`,
		`deb\.debian` + `\.org`, `registry\.npmjs` + `\.org`,
	}, "|"))
	for _, name := range files(t) {
		raw := read(t, name)
		if bytes.IndexByte(raw[:min(len(raw), 8000)], 0) >= 0 || strings.Contains(name, "testdata/") {
			continue // audio, or responses of AudD
		}
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, 10<<20)
		for n := 1; lines.Scan(); n++ {
			if found := banned.FindString(lines.Text()); found != "" {
				t.Errorf("%s:%d contains %q", name, n, strings.TrimSpace(found))
			}
		}
		require.NoError(t, lines.Err(), name)
	}
}

func TestNoCommentContainsATODO(t *testing.T) {
	t.Parallel()
	later := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	for _, name := range files(t) {
		switch filepath.Ext(name) {
		case ".go", ".lua", ".sql", ".md", ".yml":
			if found := later.Find(read(t, name)); found != nil {
				t.Errorf("%s contains %s: do it, or open an issue", name, found)
			}
		}
	}
}

func TestSampleClipsAreSmallAndCoverEveryRule(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(root(t), "examples", "audio")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	total := int64(0)
	contents := map[string]string{}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == ".md" || ext == ".go" {
			continue
		}
		raw := read(t, filepath.Join("examples", "audio", e.Name()))
		total += int64(len(raw))
		require.Emptyf(t, contents[string(raw)], "%s has the content of another clip, so both would have one key", e.Name())
		contents[string(raw)] = e.Name()
	}
	require.Less(t, total, int64(600<<10), "a clone should stay small")
	for _, word := range []string{"match", "unknown", "broken", "flaky", "long"} {
		matches, err := filepath.Glob(filepath.Join(dir, word+"*"))
		require.NoError(t, err)
		require.NotEmptyf(t, matches, "no clip for the simulator's rule %q", word)
	}
}
