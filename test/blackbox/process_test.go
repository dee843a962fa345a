package blackbox

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a command of ours that runs.
type process struct {
	t        *testing.T
	name     string
	cmd      *exec.Cmd
	out, log output // stdout, stderr
	ended    chan struct{}
	code     int // once ended; -1 = by a signal
}

// launch is one command to start, on the one thread that starts them all.
type launch struct {
	cmd  *exec.Cmd
	done chan error
}

var (
	launches    = make(chan launch)
	spawnerOnce sync.Once
)

const spawnerFunction = "reprise/test/blackbox.spawner"

// spawner starts every child from a thread that lives as long as this process:
// the kernel ends the children (Pdeathsig) with the thread that started them.
func spawner() {
	runtime.LockOSThread()
	for l := range launches {
		l.done <- l.cmd.Start()
	}
}

// start runs a built command with only these environment variables. It is
// killed at the end of the test; its output is shown when the test fails.
func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(filepath.Join(bin, name), args...), ended: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	spawnerOnce.Do(func() { go spawner() })
	l := launch{p.cmd, make(chan error, 1)}
	launches <- l
	require.NoError(t, <-l.done)
	go func() {
		_ = p.cmd.Wait() // the code says it
		p.code = p.cmd.ProcessState.ExitCode()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %s (exit code %d)\nstdout:\n%s\nstderr:\n%s", name, strings.Join(args, " "), p.code, tail(p.out.String()), tail(p.log.String()))
		}
		if strings.Contains(p.log.String(), "DATA RACE") {
			t.Errorf("%s has a data race:\n%s", name, p.log.String())
		}
	})
	return p
}

// run runs a command to its end.
func run(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := start(t, env, name, args...)
	p.wait(time.Minute)
	return p
}

// terminate sends SIGTERM.
func (p *process) terminate() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM), p.name)
}

// kill ends the process with SIGKILL, if it has not ended, and waits.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// wait is the exit code.
func (p *process) wait(within time.Duration) int {
	p.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		require.Fail(p.t, p.name+" did not end within "+within.String())
	}
	return p.code
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// line waits for a log line (JSON) with this message and returns its fields.
func (p *process) line(msg string, within time.Duration) map[string]any {
	p.t.Helper()
	var found map[string]any
	ok := eventually(within, func() bool {
		for l := range strings.Lines(p.log.String()) {
			var fields map[string]any
			if json.Unmarshal([]byte(l), &fields) == nil && fields["msg"] == msg {
				found = fields
				return true
			}
		}
		return !p.running()
	})
	require.True(p.t, ok && found != nil, "%s did not log %q within %s", p.name, msg, within)
	return found
}

// eventually polls until ok, or not within the time.
func eventually(within time.Duration, ok func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(25 * time.Millisecond)
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

// pass lets time go by, where the time itself is what a test is about.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
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
