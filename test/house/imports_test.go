package house

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "reprise"

// pkg is a package as `go list -json` prints it, without the imports of tests.
type pkg struct {
	ImportPath    string
	Imports, Deps []string
}

// goList lists the packages of this module, with -e also those that do not compile.
func goList(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = root(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		pkgs = append(pkgs, p)
	}
	require.NotEmpty(t, pkgs)
	return pkgs
}

// root is the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.mod"))
	return dir
}

// roomOf is the room of a package or file: cmd/x, internal/x, else the first part
// of its path. It is empty for bench and test, which may import everything.
func roomOf(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, module+"/"), "/")
	switch parts[0] {
	case "bench", "test":
		return ""
	case "cmd", "internal":
		if len(parts) > 1 {
			return parts[0] + "/" + parts[1]
		}
	}
	return parts[0]
}

// within reports whether a path is one of the prefixes or below one.
func within(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/")
	})
}

func TestPackagesImportOnlyAllowedPackages(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t) {
		from := roomOf(p.ImportPath)
		if from == "" {
			continue
		}
		rule, drawn := drawing[from]
		if !drawn {
			t.Errorf("%s: the room %q has no rule in test/house/drawing_test.go and CONTRIBUTING.md", p.ImportPath, from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module+"/")
			if ours && !within(to, append([]string{from}, rule.may...)) {
				t.Errorf("%s imports %s: %s", p.ImportPath, imp, rule.why)
			}
		}
	}
}

func TestImportRulesNameOnlyExistingPackages(t *testing.T) {
	t.Parallel()
	pkgs := goList(t)
	exists := func(room string) bool {
		return slices.ContainsFunc(pkgs, func(p pkg) bool { return within(p.ImportPath, []string{module + "/" + room}) })
	}
	for name, rule := range drawing {
		for _, room := range append([]string{name}, rule.may...) {
			if !exists(room) {
				t.Errorf("the rule of %q names %q: there is no such package", name, room)
			}
		}
	}
}

func TestLibrariesAreImportedByAllowedPackagesOnly(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t) {
		from := roomOf(p.ImportPath)
		for name, lib := range libraries {
			if from == "" || within(from, lib.only) {
				continue
			}
			for _, imp := range p.Imports {
				if within(imp, lib.prefixes) {
					t.Errorf("%s imports %s (%s): %s", p.ImportPath, imp, name, lib.why)
				}
			}
		}
	}
}

func TestBinariesLinkNoBannedPackage(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t) {
		for _, ban := range linkBans {
			if p.ImportPath != module+"/"+ban.binary {
				continue
			}
			for _, dep := range p.Deps {
				if within(dep, []string{ban.banned}) {
					t.Errorf("%s links %s: %s", p.ImportPath, dep, ban.why)
				}
			}
		}
	}
}

var update = flag.Bool("update", false, "write the import rules to .golangci.yml")

func TestLinterHasTheSameImportRules(t *testing.T) {
	t.Parallel()
	path := filepath.Join(root(t), ".golangci.yml")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), "      rules:\n")
	require.True(t, found, "the rules of depguard")
	_, after, found := strings.Cut(rest, "    errcheck:\n")
	require.True(t, found, "errcheck follows depguard")
	want := before + "      rules:\n" + depguardRules() + "    errcheck:\n" + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	} else {
		require.Equal(t, want, string(raw), "go test ./test/house -run Linter -update writes the rules to .golangci.yml")
	}
}

// depguardRules writes the drawing as settings of depguard.
func depguardRules() string {
	var b strings.Builder
	rule := func(name string, files []string, lines ...string) {
		fmt.Fprintf(&b, "        %s:\n          list-mode: lax\n          files: [%s]\n", strings.ReplaceAll(name, "/", "-"), strings.Join(files, ", "))
		for _, line := range lines {
			fmt.Fprintf(&b, "          %s\n", line)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(drawing)) {
		var allow []string
		for _, other := range append([]string{name}, drawing[name].may...) {
			allow = append(allow, module+"/"+other)
		}
		rule(name, []string{"'${config-path}/" + name + "/**'", "'!$test'"},
			"allow: ["+strings.Join(allow, ", ")+"]", fmt.Sprintf("deny: [{pkg: %s/, desc: %q}]", module, drawing[name].why))
	}
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		lib := libraries[name]
		files := []string{"'**'", "'!$test'"}
		for _, free := range append(slices.Clone(lib.only), "bench", "test") {
			files = append(files, "'!${config-path}/"+free+"/**'")
		}
		var deny []string
		for _, prefix := range lib.prefixes {
			deny = append(deny, fmt.Sprintf("{pkg: %s, desc: %q}", prefix, lib.why))
		}
		rule(name, files, "deny: ["+strings.Join(deny, ", ")+"]")
	}
	return b.String()
}
