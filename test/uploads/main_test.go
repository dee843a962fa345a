package uploads

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"reprise/internal/redistest"
)

// bin is the folder of the built commands.
var bin string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(built{redistest.Wrap(m)}, redistest.IgnoreRedial())
}

// built runs the tests with the commands built, and removes them afterwards.
type built struct{ redistest.M }

// Run builds, tests and cleans up; it returns the exit code.
func (b built) Run() int {
	dir, err := os.MkdirTemp("", "reprise-uploads-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "uploads: make a folder for the commands:", err)
		return 1
	}
	defer os.RemoveAll(dir) // a temporary folder
	args := slices.Concat([]string{"build"}, raceFlags, []string{"-o", dir + string(filepath.Separator), "./cmd/worker", "./cmd/enqueue"})
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "uploads: build the commands: %s\n%s", err, out)
		return 1
	}
	bin = dir
	return b.M.Run()
}
