package proctest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// bin is the folder of the built commands, set before the first test runs.
var bin string

// M is a *testing.M, or a wrapper of one, whose Run also builds commands and
// removes them afterwards, for goleak.VerifyTestMain and os.Exit.
type M struct {
	m        interface{ Run() int }
	commands []string
}

// Build makes an M with these commands, folders of cmd/.
func Build(m interface{ Run() int }, commands ...string) M { return M{m, commands} }

// Run builds, tests and cleans up; it returns the exit code.
func (b M) Run() int {
	dir, err := os.MkdirTemp("", "reprise-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "proctest: make a folder for the commands:", err)
		return 1
	}
	defer os.RemoveAll(dir) // a temporary folder
	args := slices.Concat([]string{"build"}, raceFlags, []string{"-o", dir + string(filepath.Separator)})
	for _, name := range b.commands {
		args = append(args, "reprise/cmd/"+name)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil { //nolint:gosec,noctx // commands of ours; go test ends it
		fmt.Fprintf(os.Stderr, "proctest: build the commands: %s\n%s", err, out)
		return 1
	}
	bin = dir
	return b.m.Run()
}

// AtOnce is how many tests of this binary run at the same time unless -parallel
// says it. Tests that wait for leases, backoffs and outages most of the time
// would take the sum of all waits if there were as many as CPUs. Call it in
// TestMain.
func AtOnce(n int) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // a number: it cannot fail
	}
}
