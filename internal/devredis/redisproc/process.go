package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"reprise/internal/child"
)

// ErrNoBinary is returned when no redis-server is on PATH.
var ErrNoBinary = errors.New("redis-server is not on PATH: run `apt-get install redis-server`")

// Find returns the redis-server on PATH, or an error wrapping ErrNoBinary.
func Find() (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", fmt.Errorf("look for redis-server: %w", ErrNoBinary)
	}
	return path, nil
}

// Config configures a redis-server.
type Config struct {
	// Binary is the redis-server to run.
	Binary string
	// Args are its arguments. With them it must listen on Network and Addr.
	Args []string
	// Network and Addr are dialled to check whether it is ready.
	Network, Addr string
	// Log receives stdout and stderr. It must be readable: errors quote its end.
	Log *os.File
	// Files are inherited as descriptors 3 and up.
	Files []*os.File
	// DeathSignal is the signal that the kernel sends the child when this process ends (Linux only).
	DeathSignal syscall.Signal
}

// Process is a running redis-server. All methods are safe for concurrent use.
type Process struct {
	*child.Process
	cfg  Config
	stop sync.Once // only the first Stop signals
}

// Start runs the server and returns without waiting for it to be ready.
func Start(cfg Config) (*Process, error) {
	cmd := exec.Command(cfg.Binary, cfg.Args...) //nolint:gosec,noctx // the caller found it on PATH; Stop ends it, no context does
	cmd.Stdout, cmd.Stderr = cfg.Log, cfg.Log
	cmd.ExtraFiles = cfg.Files
	p, err := child.Start(cmd, cfg.DeathSignal)
	if err != nil {
		return nil, err
	}
	return &Process{Process: p, cfg: cfg}, nil
}

// Stop asks the child to end (SIGTERM: it syncs its AOF), waits at most grace,
// then kills it. Calling it again waits for the first call's effect.
func (p *Process) Stop(grace time.Duration) error {
	p.stop.Do(func() { _ = p.Signal(syscall.SIGTERM) }) // it has ended, or is killed below
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.Done():
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("redis-server did not end within %s and was killed", grace)
	}
}

// WaitReady returns when the child answers PING, which means that its data is
// loaded. It returns an error that quotes the log when the child ends or ctx is
// done first, and when another server answers at the address. The child keeps
// running after an error.
func (p *Process) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		last := probe(ctx, p.cfg.Network, p.cfg.Addr, p.Pid())
		if last == nil || errors.Is(last, errOther) {
			return last
		}
		select {
		case <-p.Done():
			return fmt.Errorf("redis-server ended while starting (%w); its log ends: %s", p.Cause(), p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("wait for redis-server to be ready: %w (%w); its log ends: %s", ctx.Err(), last, p.logTail())
		case <-tick.C:
		}
	}
}

// logTail is the end of the log on one line, for error messages.
func (p *Process) logTail() string {
	const most = 600
	info, err := p.cfg.Log.Stat()
	if err != nil {
		return "(no log)"
	}
	from := max(info.Size()-most, 0)
	buf := make([]byte, info.Size()-from)
	n, _ := p.cfg.Log.ReadAt(buf, from) // a short read is quoted, too
	lines := strings.FieldsFunc(strings.ToValidUTF8(string(buf[:n]), ""), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, " | ")
}
