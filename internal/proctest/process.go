package proctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/internal/child"
)

// Process is a started command. Methods that wait or send a signal fail the test on an error, so call them
// from the test's goroutine. Kill, Running and ExitCode are promoted from child.Process and never fail
// the test.
type Process struct {
	*child.Process

	// Name is the name in messages.
	Name string
	// Out collects stdout, Log stderr.
	Out, Log Output

	tb testing.TB
}

// Start starts a command that Build built, in an empty folder, with these environment variables, PATH and an
// empty HOME.
func Start(tb testing.TB, env []string, name string, args ...string) *Process {
	tb.Helper()
	cmd := exec.Command(filepath.Join(bin, name), args...) //nolint:gosec,noctx // built by Build; it ends with the test
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + tb.TempDir()}, env...)
	cmd.Dir = tb.TempDir()
	return Launch(tb, name, cmd)
}

// Run starts a command and waits until it has ended, for Patience at most.
func Run(tb testing.TB, env []string, name string, args ...string) *Process {
	tb.Helper()
	p := Start(tb, env, name, args...)
	p.Wait(Patience)
	return p
}

// Launch starts cmd and collects its output; name stands for it in messages. The process is killed at the end
// of the test, and its output is shown when the test fails.
func Launch(tb testing.TB, name string, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{Name: name, tb: tb}
	cmd.Stdout, cmd.Stderr = &p.Out, &p.Log
	c, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		tb.Fatal(err)
	}
	p.Process = c
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("%s %s (exit code %d)\nstdout:\n%s\nstderr:\n%s", p.Name, strings.Join(cmd.Args[1:], " "), p.ExitCode(), p.Out.Tail(), p.Log.Tail())
		}
		if strings.Contains(p.Log.String(), "DATA RACE") {
			tb.Errorf("%s has a data race:\n%s", p.Name, p.Log.String())
		}
	})
	return p
}

// Signal sends sig to the process.
func (p *Process) Signal(sig os.Signal) {
	p.tb.Helper()
	if err := p.Process.Signal(sig); err != nil {
		p.tb.Fatal(err)
	}
}

// Terminate sends SIGTERM and does not wait.
func (p *Process) Terminate() {
	p.tb.Helper()
	p.Signal(syscall.SIGTERM)
}

// Stop sends SIGTERM and waits for exit code 0.
func (p *Process) Stop(within time.Duration) {
	p.tb.Helper()
	p.Terminate()
	if code := p.Wait(within); code != 0 {
		p.tb.Fatalf("exit code %d of %s after SIGTERM", code, p.Name)
	}
}

// Wait waits for the end and returns the exit code, -1 for an end by a signal.
func (p *Process) Wait(within time.Duration) int {
	p.tb.Helper()
	if !Poll(within, func() bool { return !p.Running() }) {
		p.tb.Fatalf("%s did not end within %s", p.Name, within)
	}
	return p.ExitCode()
}

// Line waits for a log line with this message and returns it. It fails at once if the process has ended
// without one.
func (p *Process) Line(msg string, within time.Duration) Line {
	p.tb.Helper()
	var found []Line
	Poll(within, func() bool {
		ended := !p.Running() // read first: after the end the log is complete
		found = p.Log.Lines(msg)
		return len(found) > 0 || ended
	})
	if len(found) == 0 {
		p.tb.Fatalf("%s did not log %q within %s", p.Name, msg, within)
	}
	return found[0]
}
