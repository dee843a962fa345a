package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goFile is one parsed Go file of the tree.
type goFile struct {
	name string
	fset *token.FileSet
	ast  *ast.File
	raw  []byte
}

func (f goFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// lines is the number of lines that a node spans.
func (f goFile) lines(n ast.Node) int {
	return f.fset.Position(n.End()).Line - f.fset.Position(n.Pos()).Line + 1
}

// goFiles parses every Go file of the tree.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var out []goFile
	for _, name := range files(t) {
		if filepath.Ext(name) != ".go" {
			continue
		}
		f := goFile{name: name, fset: token.NewFileSet(), raw: read(t, name)}
		var err error
		f.ast, err = parser.ParseFile(f.fset, name, f.raw, parser.SkipObjectResolution)
		require.NoError(t, err)
		out = append(out, f)
	}
	return out
}

// larger has the types that may have more methods than others, with their limits.
// Lower a limit when methods are removed; add no type.
var larger = map[string]int{
	"admission.Gates":            44,
	"idempotency.Ledger":         33,
	"intake.Intake":              44,
	"internal/auddsim.Simulator": 30,
	"internal/auddsim.call":      44,
	"store.Store":                35,
	"worker.Worker":              26,
	"cmd/inspect.session":        26,
}

func TestFilesFunctionsAndTypesAreSmall(t *testing.T) {
	t.Parallel()
	const maxFile, maxFunction, maxMethods = 399, 60, 25
	total, methods := 0, map[string]int{}
	for _, f := range goFiles(t) {
		n := bytes.Count(f.raw, []byte("\n"))
		if n > maxFile {
			t.Errorf("%s has %d lines, at most %d are allowed: split it by idea", f.name, n, maxFile)
		}
		if f.isTest() {
			continue
		}
		if !strings.HasPrefix(f.name, "test/") {
			total += n
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := f.lines(fn.Body) - 2; n > maxFunction {
				t.Errorf("%s: %s has %d lines, at most %d are allowed", f.fset.Position(fn.Pos()), fn.Name.Name, n, maxFunction)
			}
			if fn.Recv != nil {
				methods[filepath.Dir(f.name)+"."+receiver(fn)]++
			}
		}
	}
	for name, n := range methods {
		if limit := max(maxMethods, larger[name]); n > limit {
			t.Errorf("the type %s has %d methods, at most %d are allowed: split it by idea", name, n, limit)
		}
	}
	for _, name := range files(t) {
		if filepath.Ext(name) == ".lua" {
			total += bytes.Count(read(t, name), []byte("\n"))
		}
	}
	t.Logf("%d lines of Go and Lua without tests", total)
}

// receiver is the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	x := fn.Recv.List[0].Type
	for {
		switch e := x.(type) {
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// A literal of an asynq key outside internal/queue would break unnoticed when
// asynq changes its keys.
func TestAsynqKeysAppearInInternalQueueOnly(t *testing.T) {
	t.Parallel()
	key := "asynq" + ":" // in two parts, so that this file does not match
	for _, f := range goFiles(t) {
		if within(f.name, []string{"internal/queue"}) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && lit.Kind == token.STRING && strings.HasPrefix(strings.Trim(lit.Value, "\"`"), key) {
				t.Errorf("%s: %s is an asynq key: use internal/queue/asynqkey", f.fset.Position(lit.Pos()), lit.Value)
			}
			return true
		})
	}
	for _, name := range files(t) {
		if filepath.Ext(name) == ".lua" && bytes.Contains(read(t, name), []byte(key)) {
			t.Errorf("%s contains an asynq key: pass it in KEYS from internal/queue/asynqkey", name)
		}
	}
}

// asserting are the packages whose functions fail a test.
var asserting = []string{"require", "assert", "proctest", "testscript", "rapid", "goleak"}

// failing are the methods of testing.TB that fail a test.
var failing = []string{"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"}

func TestEveryTestAsserts(t *testing.T) {
	t.Parallel()
	packages := map[string][]*ast.FuncDecl{}
	where := map[*ast.FuncDecl]string{}
	for _, f := range goFiles(t) {
		if !f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				packages[filepath.Dir(f.name)] = append(packages[filepath.Dir(f.name)], fn)
				where[fn] = fmt.Sprint(f.fset.Position(fn.Pos()))
			}
		}
	}
	for _, funcs := range packages {
		helpers := helpersThatAssert(funcs)
		for _, fn := range funcs {
			if strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" && fn.Recv == nil && !asserts(fn, helpers) {
				t.Errorf("%s: %s asserts nothing", where[fn], fn.Name.Name)
			}
		}
	}
}

// helpersThatAssert are the names of the functions of a package that assert,
// directly or through another one. A constructor does not count: it checks its
// own steps, not the subject of the test.
func helpersThatAssert(funcs []*ast.FuncDecl) map[string]bool {
	helpers := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, fn := range funcs {
			name := fn.Name.Name
			if !helpers[name] && !strings.HasPrefix(name, "new") && !strings.HasPrefix(name, "Test") && asserts(fn, helpers) {
				helpers[name], grown = true, true
			}
		}
	}
	return helpers
}

func asserts(fn *ast.FuncDecl, helpers map[string]bool) (found bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return !found
		}
		f := call.Fun
		if x, ok := f.(*ast.IndexExpr); ok {
			f = x.X
		}
		switch f := f.(type) {
		case *ast.Ident:
			found = found || helpers[f.Name]
		case *ast.SelectorExpr:
			x, _ := f.X.(*ast.Ident)
			found = found || helpers[f.Sel.Name] || slices.Contains(failing, f.Sel.Name) || x != nil && slices.Contains(asserting, x.Name)
		}
		return !found
	})
	return found
}
