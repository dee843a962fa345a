// Package redisproc runs a redis-server as a child process: the embedded Redis of `worker dev` and the
// servers of tests and benchmarks. Package child says when the server ends with this process.
package redisproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"reprise/internal/child"
)

const (
	startTimeout = time.Minute // includes loading the data
	startTries   = 5           // with a free port, which another process may take first
	probeTimeout = 2 * time.Second

	// StopTimeout is how long callers wait for a server that syncs its data at its end.
	StopTimeout = 10 * time.Second
)

var errOther = errors.New("another redis-server answers at this address")

// Find returns the path of the redis-server on PATH.
func Find() (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", fmt.Errorf("redis-server is not on PATH; install it with `apt-get install redis-server`: %w", err)
	}
	return path, nil
}

// Config configures a redis-server. It has no persistence unless Args enable it, and never evicts keys.
type Config struct {
	Dir    string         // data folder
	Socket string         // unix socket to listen on; empty: a TCP port of 127.0.0.1
	Port   int            // TCP port; 0: a free one
	Log    string         // file that stdout and stderr are appended to
	Args   []string       // more arguments; of two values of a setting the later one counts
	Files  []*os.File     // inherited as descriptors 3 and up
	Death  syscall.Signal // sent to the server when this process ends (Linux only)
}

func (c Config) arguments() []string {
	listen := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(c.Port)}
	if c.Socket != "" {
		listen = []string{"--port", "0", "--unixsocket", c.Socket, "--unixsocketperm", "700"}
	}
	return slices.Concat(listen, []string{
		"--dir", c.Dir, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--daemonize", "no", "--logfile", "",
	}, c.Args)
}

// Process is a running redis-server. All methods are safe for concurrent use.
type Process struct {
	*child.Process
	Addr string // 127.0.0.1:port, or the socket
	Port int    // 0 for a socket
}

// Start runs a redis-server and waits until it has loaded its data. It returns an error that quotes the log
// if the server ends, or is not ready when ctx ends or after a minute.
func Start(ctx context.Context, c Config) (*Process, error) {
	binary, err := Find()
	if err != nil {
		return nil, err
	}
	if c.Socket != "" || c.Port != 0 {
		return start(ctx, binary, c)
	}
	var last error
	for range startTries {
		if c.Port, err = FreePort(); err != nil {
			return nil, err
		}
		p, err := start(ctx, binary, c)
		if err == nil {
			return p, nil
		}
		last = err
	}
	return nil, last
}

func start(ctx context.Context, binary string, c Config) (*Process, error) {
	network, addr := "unix", c.Socket
	if addr == "" {
		network, addr = "tcp", fmt.Sprintf("127.0.0.1:%d", c.Port)
	}
	cmd := exec.Command(binary, c.arguments()...) //nolint:gosec,noctx // found on PATH; Stop ends it, no context does
	cmd.ExtraFiles = c.Files
	running, err := child.StartLogged(cmd, c.Death, c.Log)
	if err != nil {
		return nil, err
	}
	if err := waitReady(ctx, running, network, addr); err != nil {
		running.Kill()
		return nil, err
	}
	return &Process{Process: running, Addr: addr, Port: c.Port}, nil
}

func waitReady(ctx context.Context, p *child.Process, network, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		last := probe(ctx, network, addr, p.Pid())
		if last == nil || errors.Is(last, errOther) {
			return last
		}
		select {
		case <-p.Done():
			return fmt.Errorf("redis-server ended while starting (%w); its log ends: %s", p.Cause(), p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("wait for redis-server to be ready: %w (%w); its log ends: %s", ctx.Err(), last, p.Tail())
		case <-tick.C:
		}
	}
}

// probe returns nil when the server at the address has loaded its data, and errOther when it is not the
// process pid. A server that requires a password is not asked for its process id. probe uses no go-redis
// client, which would log every failed dial.
func probe(ctx context.Context, network, addr string, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return fmt.Errorf("dial redis: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("set the deadline of a probe: %w", err)
	}
	if _, err := io.WriteString(conn, "PING\r\nINFO server\r\n"); err != nil {
		return fmt.Errorf("send PING: %w", err)
	}
	reply := bufio.NewScanner(conn)
	for reply.Scan() {
		line := reply.Text()
		value, isID := strings.CutPrefix(line, "process_id:")
		switch {
		case strings.HasPrefix(line, "-NOAUTH"), isID && value == strconv.Itoa(pid):
			return nil
		case isID:
			return errOther
		case strings.HasPrefix(line, "-"):
			return fmt.Errorf("redis is not ready: %s", line)
		}
	}
	return fmt.Errorf("read the reply to PING: %w", errors.Join(reply.Err(), io.ErrUnexpectedEOF))
}
