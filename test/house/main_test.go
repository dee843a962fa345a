package house

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// commands are built once per test binary, when a test needs them.
var commands struct {
	sync.Mutex

	dir    string
	builds map[string]func() error
}

// command builds a command of this tree and returns its path.
func command(t *testing.T, name string) string {
	t.Helper()
	require.DirExists(t, filepath.Join(root(t), "cmd", name), "a document names this command")
	exe := filepath.Join(commands.dir, name)
	commands.Lock()
	build := commands.builds[name]
	if build == nil {
		dir := root(t)
		build = sync.OnceValue(func() error {
			cmd := exec.Command("go", "build", "-o", exe, "./cmd/"+name)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("build %s: %w\n%s", name, err, out)
			}
			return nil
		})
		commands.builds[name] = build
	}
	commands.Unlock()
	require.NoError(t, build())
	return exe
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "house")
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	commands.dir, commands.builds = dir, map[string]func() error{}
	return m.Run()
}
