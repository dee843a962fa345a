package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// proc is a child process that does not outlive this one (on Linux).
type proc struct {
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
	err  error // how it ended; written before done is closed
}

// startProc starts cmd and watches it. The child is forked from a thread that
// lives as long as it does: the kernel sends the death signal when that ends.
func startProc(cmd *exec.Cmd, log *os.File) (*proc, error) {
	dieWithParent(cmd)
	p := &proc{cmd: cmd, log: log, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// tail is the end of the child's log on one line.
func (p *proc) tail() string {
	const most = 800
	info, err := p.log.Stat()
	if err != nil {
		return "(no log)"
	}
	f, err := os.Open(p.log.Name())
	if err != nil {
		return "(no log)"
	}
	defer f.Close()
	raw, _ := io.ReadAll(io.NewSectionReader(f, max(info.Size()-most, 0), most)) // a short read is still worth quoting
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(raw), "")), " ")
}
