package main

import (
	"errors"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	testscript.Main(redistest.Wrap(m), map[string]func(){"inspect": main, "hold": hold})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status,
			"seed":   seed,
		},
		Setup: func(env *testscript.Env) error {
			srv := redistest.NewServer(env.T().(testing.TB), redistest.Password("p@ss/sesame"))
			env.Setenv("REDIS", srv.URL())
			env.Setenv("REPRISE_REDIS_URL", srv.URL())
			env.Setenv("REPRISE_STORE_URL", "sqlite:"+env.WorkDir+"/store.db")
			env.Setenv("USER", "ops")
			return nil
		},
	})
}

// status CODE COMMAND… runs a command and requires its exit code.
func status(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("run %s: %s", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
