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

// bin is the folder of the built commands. Run sets it before the tests start.
var bin string

// M wraps a *testing.M, or another wrapper. Its Run also builds commands and removes them afterwards. Pass it
// to goleak.VerifyTestMain or os.Exit.
type M struct {
	m        interface{ Run() int }
	commands []string
}

// Build returns an M that builds these commands, folders of cmd/.
func Build(m interface{ Run() int }, commands ...string) M { return M{m, commands} }

// Run builds the commands, runs the tests and returns the exit code.
func (b M) Run() int {
	dir, err := os.MkdirTemp("", "reprise-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "proctest: make a folder for the commands:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	args := slices.Concat([]string{"build"}, raceFlags, []string{"-o", dir + string(filepath.Separator)})
	for _, name := range b.commands {
		args = append(args, "reprise/cmd/"+name)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil { //nolint:gosec,noctx // commands of this module; go test ends it
		fmt.Fprintf(os.Stderr, "proctest: build the commands: %s\n%s", err, out)
		return 1
	}
	bin = dir
	return b.m.Run()
}

// AtOnce sets how many parallel tests of this binary run at the same time, unless -parallel is given. Call it
// in TestMain. The default, the number of CPUs, is too low for tests that mostly wait.
func AtOnce(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(n)) // a number: it cannot fail
	}
}
