package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"reprise/internal/proctest"
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
			"status": proctest.Status,
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
