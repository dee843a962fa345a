package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	testscript.Main(redistest.Wrap(m), map[string]func(){"enqueue": main, "settle": settle})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":     proctest.Status,
			"waitqueued": waitQueued,
		},
		Setup: func(env *testscript.Env) error {
			srv := redistest.NewServer(env.T().(testing.TB), redistest.Password("p@ss/sesame"))
			env.Setenv("REDIS", srv.URL())
			for name, content := range map[string][]byte{
				"a.wav": wav(1), "b.wav": wav(2), "twin.wav": wav(1), "sub/c.wav": wav(3), "empty.wav": nil,
				"../later/a.wav": wav(5), "../later/b.wav": wav(6), "../later/twin.wav": wav(5), "../later/c.wav": wav(7),
			} {
				path := filepath.Join(env.WorkDir, "clips", name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, content, 0o600); err != nil {
					return err
				}
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "long.wav"), wavOf(61*8000, 4), 0o600)
		},
	})
}

// waitQueued QUEUE N waits until so many tasks are pending.
func waitQueued(ts *testscript.TestScript, _ bool, args []string) {
	opt, err := redis.ParseURL(ts.Getenv("REDIS"))
	ts.Check(err)
	rdb := redis.NewClient(opt)
	defer rdb.Close()
	came := proctest.Poll(time.Minute, func() bool {
		c, err := redistest.CountTasks(context.Background(), rdb, args[0])
		return err == nil && strconv.Itoa(c.Pending) == args[1]
	})
	if came {
		return
	}
	ts.Fatalf("%s tasks in %s never came", args[1], args[0])
}

func wav(seed byte) []byte { return wavOf(1600, seed) }

// wavOf is n bytes of 8 kHz, 8 bit, mono PCM.
func wavOf(n int, seed byte) []byte {
	number := func(v, bytes int) (b []byte) {
		for range bytes {
			b, v = append(b, byte(v)), v>>8
		}
		return b
	}
	b := append([]byte("RIFF"), number(36+n, 4)...)
	b = append(append(b, "WAVEfmt "...), number(16, 4)...)
	b = append(append(b, number(1, 2)...), number(1, 2)...)
	b = append(append(b, number(8000, 4)...), number(8000, 4)...)
	b = append(append(b, number(1, 2)...), number(8, 2)...)
	b = append(append(b, "data"...), number(n, 4)...)
	for i := range n {
		b = append(b, byte(i)*seed+seed)
	}
	return b
}

// A producer needs no API token, so it must not hold the code that uses one.
func TestEnqueueDoesNotLinkTheAPIClient(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "reprise/intake")
	for _, banned := range []string{"reprise/audd", "reprise/worker", "reprise/retrypolicy"} {
		require.NotContains(t, deps, banned)
	}
}
