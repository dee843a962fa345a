package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"reprise/internal/child"
)

// proc is a child process of a case and the file it logs to.
type proc struct {
	*child.Process
	log *os.File
}

// startProc runs cmd, which does not outlive this process, with its output in log.
func startProc(cmd *exec.Cmd, log *os.File) (*proc, error) {
	cmd.Stdout, cmd.Stderr = log, log
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	return &proc{Process: p, log: log}, nil
}

// ready waits until the worker logs that it takes tasks.
func (p *proc) ready(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		said, err := os.ReadFile(p.log.Name())
		if err != nil {
			return fmt.Errorf("read the worker's log: %w", err)
		}
		if strings.Contains(string(said), `"msg":"ready"`) {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("the worker ended while starting: %w; its log ends: %s", p.Cause(), p.tail())
		case <-ctx.Done():
			return fmt.Errorf("wait for the worker to be ready: %w; its log ends: %s", ctx.Err(), p.tail())
		case <-tick.C:
		}
	}
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
