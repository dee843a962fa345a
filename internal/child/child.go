// Package child runs a process that does not outlive this one: the embedded Redis, the workers of benchmarks
// and the commands of tests.
//
// On Linux the kernel signals the child when this process ends, even by SIGKILL. Elsewhere a child survives a
// parent that was killed with SIGKILL.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Process is a child that was started. All methods are safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	log  string // file of StartLogged
	done chan struct{}
	err  error // how it ended; written before done is closed
}

// outputDelay bounds the wait for the output of an ended child, because a process that it started may keep
// the output open.
const outputDelay = 2 * time.Second

// Start runs cmd in a process group of its own and waits for it in the background. It replaces
// cmd.SysProcAttr. On Linux the kernel sends the child the signal death when this process ends.
func Start(cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	cmd.SysProcAttr = attr(death)
	cmd.WaitDelay = outputDelay
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.hold(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// StartLogged is Start with stdout and stderr appended to the file log, which it creates with mode 0600.
func StartLogged(cmd *exec.Cmd, death syscall.Signal, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", cmd.Path, err)
	}
	defer out.Close() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = out, out
	p, err := Start(cmd, death)
	if err != nil {
		return nil, err
	}
	p.log = log
	return p, nil
}

// hold starts the child and keeps its OS thread until the child has ended. The kernel sends the death signal
// when the thread that started the child ends, and the Go runtime ends idle threads.
func (p *Process) hold(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	close(p.done)
}

// Pid returns the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and its output was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until Done and returns the error of exec.Cmd.Wait: nil for exit code 0.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Cause waits and returns why the child ended. Exit code 0 is an error too.
func (p *Process) Cause() error {
	if err := p.Wait(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}

// Running reports whether the child has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitCode returns the exit code; -1 while the child runs and when a signal ended it.
func (p *Process) ExitCode() int {
	if p.Running() {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends sig to the child; it fails when the child has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s with %s: %w", p.cmd.Path, sig, err)
	}
	return nil
}

// Tail returns the end of the log on one line, for error messages; "" without a log.
func (p *Process) Tail() string {
	const most = 800
	raw, _ := os.ReadFile(p.log)
	raw = raw[max(len(raw)-most, 0):]
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(raw), "")), " ")
}

// Stop sends SIGTERM and waits for the end. It kills a child that has not ended after grace, and returns an
// error then.
func (p *Process) Stop(grace time.Duration) error {
	_ = p.Signal(syscall.SIGTERM) // it fails only when the child has ended
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("%s did not end within %s and was killed", filepath.Base(p.cmd.Path), grace)
	}
}

// Kill kills the child and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it fails only when the child has ended
	<-p.done
}
