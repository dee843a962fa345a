package house

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const module = "reprise"

// pkg is what `go list -json` tells of a package; test imports are left out.
type pkg struct {
	ImportPath    string
	Imports, Deps []string
}

// goList lists our packages. -e keeps a package that does not compile in the
// list, so that the drawing is judged even then.
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

// root is the top of the tree: the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.mod"))
	return dir
}

// roomOf is the room a package or file lies in: cmd/x, internal/x, else the
// first part of its path. It is empty for what is free (bench, test).
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

// within reports whether a path is one of the prefixes or lies below it.
func within(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/")
	})
}

func TestRoomsImportOnlyWhatIsDrawn(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t) {
		from := roomOf(p.ImportPath)
		if from == "" {
			continue
		}
		rule, drawn := drawing[from]
		if !drawn {
			t.Errorf("%s: the room %q is not in the drawing (test/house/drawing_test.go, CONTRIBUTING.md)", p.ImportPath, from)
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

func TestLibrariesStayInTheirRooms(t *testing.T) {
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

func TestBinariesDoNotLinkWhatTheyMustNot(t *testing.T) {
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

// The linter tells an editor at once what these tests tell CI, so both must say
// the same.
func TestDepguardAgrees(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root(t), ".golangci.yml"))
	require.NoError(t, err)
	type depguardRule struct {
		Files, Allow []string
		Deny         []struct{ Pkg, Desc string }
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct{ Rules map[string]depguardRule }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &config))

	want := map[string]depguardRule{}
	for name, r := range drawing {
		rule := depguardRule{Files: []string{"${config-path}/" + name + "/**", "!$test"}}
		for _, other := range append([]string{name}, r.may...) {
			rule.Allow = append(rule.Allow, module+"/"+other)
		}
		rule.Deny = append(rule.Deny, struct{ Pkg, Desc string }{module + "/", r.why})
		want[strings.ReplaceAll(name, "/", "-")] = rule
	}
	for name, lib := range libraries {
		rule := depguardRule{Files: []string{"**", "!$test"}}
		for _, free := range append(slices.Clone(lib.only), "bench", "test") {
			rule.Files = append(rule.Files, "!${config-path}/"+free+"/**")
		}
		for _, prefix := range lib.prefixes {
			rule.Deny = append(rule.Deny, struct{ Pkg, Desc string }{prefix, lib.why})
		}
		want[name] = rule
	}
	require.Equal(t, want, config.Linters.Settings.Depguard.Rules)
}
