package blackbox

import (
	"flag"
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
	goleak.VerifyTestMain(built{redistest.Wrap(m)}, redistest.IgnoreRedial(), goleak.IgnoreTopFunction(spawnerFunction))
}

// built runs the tests with the commands built, and removes them afterwards.
type built struct{ redistest.M }

// Run builds, tests and cleans up; it returns the exit code.
func (b built) Run() int {
	dir, err := os.MkdirTemp("", "reprise-blackbox-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "blackbox: make a folder for the commands:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	args := slices.Concat([]string{"build"}, raceFlags, []string{"-o", dir + string(filepath.Separator), "./cmd/worker", "./cmd/auddsim", "./cmd/enqueue"})
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "blackbox: build the commands: %s\n%s", err, out)
		return 1
	}
	bin = dir
	manyAtOnce()
	return b.M.Run()
}

// atOnce is how many tests run at the same time, unless -parallel says it.
// They wait for leases, backoffs and outages most of the time, so that as many
// as there are CPUs would take the sum of all waits.
const atOnce = "12"

func manyAtOnce() {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", atOnce) // a number: it cannot fail
	}
}
