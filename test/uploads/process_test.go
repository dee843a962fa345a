package uploads

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a built command that runs.
type process struct {
	t        *testing.T
	name     string
	cmd      *exec.Cmd
	out, log output // stdout, stderr
	ended    chan struct{}
}

// start runs a command with only these environment variables. It is killed at
// the end of the test; its output is shown when the test fails.
func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(filepath.Join(bin, name), args...), ended: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // the code says it
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		if t.Failed() {
			t.Logf("%s %s (exit code %d)\nstdout:\n%s\nstderr:\n%s", name, strings.Join(args, " "), p.cmd.ProcessState.ExitCode(), tail(p.out.String()), tail(p.log.String()))
		}
		if strings.Contains(p.log.String(), "DATA RACE") {
			t.Errorf("%s has a data race:\n%s", name, p.log.String())
		}
	})
	return p
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig), "%s to %s", sig, p.name)
}

// wait is the exit code, -1 for an end by a signal.
func (p *process) wait(within time.Duration) int {
	p.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		require.Fail(p.t, p.name+" did not end within "+within.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until the log holds a text.
func (p *process) says(text string, within time.Duration) {
	p.t.Helper()
	ok := eventually(within, func() bool { return strings.Contains(p.log.String(), text) })
	require.True(p.t, ok, "%s did not log %q within %s", p.name, text, within)
}

// eventually polls until ok, or not within the time.
func eventually(within time.Duration, ok func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok() {
			return true
		}
		select {
		case <-deadline.C:
			return ok()
		case <-tick.C:
		}
	}
}

func tail(s string) string {
	const most = 6000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// output collects what a process writes. Safe for concurrent use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String is everything written so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
