package uploadcrash

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

// workerBinary is the built worker.
var workerBinary string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(built{redistest.Wrap(m)}, redistest.IgnoreRedial(), goleak.IgnoreTopFunction(spawnerFunction))
}

// built runs the tests with the worker built, and removes it afterwards.
type built struct{ redistest.M }

// Run builds, tests and cleans up; it returns the exit code.
func (b built) Run() int {
	dir, err := os.MkdirTemp("", "reprise-uploadcrash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "uploadcrash: make a folder for the worker:", err)
		return 1
	}
	defer os.RemoveAll(dir) // a temporary folder
	workerBinary = filepath.Join(dir, "worker")
	cmd := exec.Command("go", slices.Concat([]string{"build"}, raceFlags, []string{"-o", workerBinary, "./cmd/worker"})...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "uploadcrash: build the worker: %s\n%s", err, out)
		return 1
	}
	manyAtOnce()
	return b.M.Run()
}

// atOnce is how many cells run at the same time, unless -parallel says it:
// they wait for leases, permits and locks most of the time.
const atOnce = "16"

func manyAtOnce() {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", atOnce) // a number: it cannot fail
	}
}
