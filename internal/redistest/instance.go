package redistest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"reprise/internal/devredis/redisproc"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
	startTries   = 5 // another process may take the port before the start
)

// instance is a redis-server process.
type instance struct {
	addr string
	proc *redisproc.Process
	log  *os.File
}

// launch starts a redis-server on a free loopback port, without persistence
// unless args enable it; dir "" is the temporary folder.
func launch(dir string, args ...string) (*instance, error) {
	var last error
	for range startTries {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		inst, err := launchAt(port, dir, args...)
		if err == nil {
			return inst, nil
		}
		last = err
	}
	return nil, last
}

func launchAt(port int, dir string, args ...string) (*instance, error) {
	binary, err := redisproc.Find()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = os.TempDir()
	}
	log, err := os.CreateTemp("", "redistest-*.log")
	if err != nil {
		return nil, fmt.Errorf("create redis log: %w", err)
	}
	_ = os.Remove(log.Name()) // the file disappears when it is closed
	addr := "127.0.0.1:" + strconv.Itoa(port)
	base := []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--daemonize", "no",
	}
	proc, err := redisproc.Start(redisproc.Config{
		Binary: binary, Args: append(base, args...),
		Network: "tcp", Addr: addr, Log: log, DeathSignal: syscall.SIGKILL,
	})
	if err != nil {
		log.Close()
		return nil, err
	}
	inst := &instance{addr: addr, proc: proc, log: log}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := proc.WaitReady(ctx); err != nil {
		inst.kill()
		return nil, err
	}
	return inst, nil
}

// close ends the server with SIGTERM.
func (i *instance) close() {
	_ = i.proc.Stop(stopTimeout) // it kills the process after the timeout
	_ = i.log.Close()
}

func (i *instance) kill() {
	i.proc.Kill()
	_ = i.log.Close()
}
