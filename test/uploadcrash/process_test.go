package uploadcrash

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a worker that runs.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	log   output
	ended chan struct{}
	code  int // once ended; -1 = by a signal
}

type launch struct {
	cmd  *exec.Cmd
	done chan error
}

var (
	launches    = make(chan launch)
	spawnerOnce sync.Once
)

const spawnerFunction = "reprise/test/uploadcrash.spawner"

// spawner starts every child from a thread that lives as long as this process:
// the kernel ends the children (Pdeathsig) with the thread that started them.
func spawner() {
	runtime.LockOSThread()
	for l := range launches {
		l.done <- l.cmd.Start()
	}
}

// start runs the worker with only these environment variables. It is killed at
// the end of the test; its log is shown when the test fails.
func start(t *testing.T, name string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(workerBinary, args...), ended: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
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
			t.Logf("the %s worker (exit code %d):\n%s", name, p.code, tail(p.log.String()))
		}
		if strings.Contains(p.log.String(), "DATA RACE") {
			t.Errorf("the %s worker has a data race:\n%s", name, p.log.String())
		}
	})
	return p
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig), "%s", sig)
}

// kill ends the process with SIGKILL, if it has not ended, and waits.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// stopping sends SIGTERM.
func (p *process) stopping() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
}

// stop ends the process with SIGTERM and waits until what it runs is finished.
func (p *process) stop() {
	p.t.Helper()
	p.stopping()
	require.Zero(p.t, p.wait(60*time.Second), "exit code after SIGTERM")
}

func (p *process) wait(within time.Duration) int {
	p.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		require.Fail(p.t, "the worker did not end within "+within.String())
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

// said reports whether the process logged one of the messages about a task
// ("" = any line).
func (p *process) said(task string, messages ...string) bool {
	for l := range strings.Lines(p.log.String()) {
		var line struct {
			Msg  string `json:"msg"`
			Task string `json:"task_id"`
		}
		if json.Unmarshal([]byte(l), &line) == nil && (task == "" || line.Task == task) && slices.Contains(messages, line.Msg) {
			return true
		}
	}
	return false
}

// eventually polls until ok, or not within the time.
func eventually(within time.Duration, ok func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
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
