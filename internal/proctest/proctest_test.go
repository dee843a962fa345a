package proctest_test

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/internal/proctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func shell(t *testing.T, script string) *proctest.Process {
	t.Helper()
	return proctest.Launch(t, "shell", exec.Command("sh", "-c", script))
}

func TestOutputIsVisibleWhileTheProcessRuns(t *testing.T) {
	t.Parallel()
	p := shell(t, `echo out; echo '{"msg":"up","n":7,"time":"2026-01-02T03:04:05Z"}' >&2; exec sleep 600`)
	up := p.Line("up", time.Minute)
	require.InDelta(t, 7, up.Number("n"), 0)
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), up.At().UTC())
	// stdout and stderr are two pipes: their order is not defined.
	proctest.Eventually(t, func() bool { return p.Out.String() == "out\n" })
	require.True(t, p.Running())
	p.Kill()
	require.False(t, p.Running())
	require.Equal(t, -1, p.Wait(time.Minute))
}

func TestStopWaitsForAGracefulExit(t *testing.T) {
	t.Parallel()
	p := shell(t, `trap 'echo bye; exit 0' TERM; echo '{"msg":"up"}' >&2; while :; do sleep 0.01; done`)
	p.Line("up", time.Minute)
	p.Stop(time.Minute)
	require.Equal(t, "bye\n", p.Out.String())
}

func TestLinesFiltersByMessageAndFields(t *testing.T) {
	t.Parallel()
	var o proctest.Output
	for _, text := range []string{
		"not JSON\n", `{"msg":"call","source":"a","path":"x"}` + "\n", `{"msg":"call","source":"b"}` + "\n", `{"msg":"other","source":"a"}` + "\n", `{"msg":"ca`,
	} {
		_, err := o.Write([]byte(text))
		require.NoError(t, err)
	}
	require.Len(t, o.Lines("call"), 2)
	require.Len(t, o.Lines("call", "source", "a"), 1)
	require.Len(t, o.Lines("call", "source", "a", "path", "x"), 1)
	require.Empty(t, o.Lines("call", "source", "b", "path", "x"))
}

func TestFailuresOfAProcessFailTheTest(t *testing.T) {
	t.Parallel()
	launch := func(tb testing.TB, script string) *proctest.Process {
		return proctest.Launch(tb, "shell", exec.Command("sh", "-c", script))
	}
	for name, body := range map[string]func(tb testing.TB){
		"data race in the log": func(tb testing.TB) {
			require.Zero(t, launch(tb, "echo 'WARNING: DATA RACE' >&2").Wait(time.Minute))
		},
		"command that does not start":    func(tb testing.TB) { proctest.Launch(tb, "no", exec.Command("/nonexistent/command")) },
		"process that does not end":      func(tb testing.TB) { launch(tb, "exec sleep 600").Wait(10 * time.Millisecond) },
		"line that is not logged":        func(tb testing.TB) { launch(tb, "exec sleep 600").Line("ready", 10*time.Millisecond) },
		"exit before the line":           func(tb testing.TB) { launch(tb, "exit 1").Line("ready", time.Hour) },
		"stop with a non-zero exit code": func(tb testing.TB) { launch(tb, "exec sleep 600").Stop(time.Minute) },
		"signal to a process that has ended": func(tb testing.TB) {
			p := launch(tb, "exit 0")
			p.Wait(time.Minute)
			p.Signal(syscall.SIGTERM)
		},
	} {
		r := &recorder{TB: t}
		r.run(body)
		require.Error(t, r.failure, name)
	}
	r := &recorder{TB: t}
	r.run(func(tb testing.TB) { require.Zero(t, launch(tb, "exit 0").Wait(time.Minute)) })
	require.NoError(t, r.failure)
}

// recorder is a testing.TB that records a failure instead of failing the test.
type recorder struct {
	testing.TB
	failure  error
	cleanups []func()
}

func (r *recorder) Cleanup(f func())               { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool                   { return r.failure != nil }
func (r *recorder) Logf(string, ...any)            {}
func (r *recorder) Errorf(format string, _ ...any) { r.failure = errors.New(format) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Errorf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Fatal(...any) { r.failure = errors.New("fatal"); runtime.Goexit() }

func (r *recorder) run(body func(testing.TB)) {
	var over sync.WaitGroup
	over.Go(func() { body(r) })
	over.Wait()
	for _, f := range r.cleanups {
		f()
	}
}

func TestEventuallyReturnsOnceTheStateHolds(t *testing.T) {
	t.Parallel()
	calls := 0
	proctest.Eventually(t, func() bool { calls++; return calls == 3 })
	require.Equal(t, 3, calls)
}

func TestNeverFailsWithTheLastState(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	state := "first"
	r.run(func(tb testing.TB) {
		proctest.Never(tb, time.Minute, func() bool { state = "last"; return true }, "state %s", func() any { return state })
	})
	require.ErrorContains(t, r.failure, "state last")
}
