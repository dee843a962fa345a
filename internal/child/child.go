// Package child runs a process that does not outlive this one: the embedded
// Redis, the workers of benchmarks and the commands of tests.
//
// On Linux the kernel signals the child when this process dies, however it
// dies. Elsewhere a child survives a parent that was killed with SIGKILL.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a child that was started. All methods are safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; written before done is closed
}

// outputDelay is how long the output of an ended child is awaited: a process
// that it started may hold it open.
const outputDelay = 2 * time.Second

// Start runs cmd in a process group of its own and watches it; what cmd says
// of system attributes is replaced. The kernel sends the child death when this
// process dies (Linux only).
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

// hold forks the child and stays on that OS thread until the child has ended:
// the kernel sends the death signal when the forking thread ends, and the Go
// runtime ends idle threads.
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

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended, by whatever cause, and its output
// was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until Done and says how the child ended, as exec.Cmd's Wait does:
// nil for exit code 0.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Cause is Wait where an end was not expected: exit code 0 is an error, too.
func (p *Process) Cause() error {
	if err := p.Wait(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}

// ExitCode is -1 while the child runs and when a signal ended it.
func (p *Process) ExitCode() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Signal sends sig to the child; it fails when the child has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s with %s: %w", p.cmd.Path, sig, err)
	}
	return nil
}

// Kill ends the child at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it fails only when there is nothing left to kill
	<-p.done
}
