package redistest

import (
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server for one test. Its methods fail the test on an error,
// so call them from the test's goroutine.
type Server struct {
	tb       testing.TB
	inst     *instance // nil while stopped
	dir      string
	addr     string
	password string
	args     []string
}

// Option is an option of NewServer.
type Option func(*Server)

// AOF enables the append-only file, which keeps data over Kill and Start; fsync
// is always, everysec or no.
func AOF(fsync string) Option { return Args("--appendonly", "yes", "--appendfsync", fsync) }

// Args adds arguments of redis-server; later ones win.
func Args(args ...string) Option { return func(s *Server) { s.args = append(s.args, args...) } }

// Password makes the server require a password; URL contains it.
func Password(password string) Option {
	return func(s *Server) {
		s.password = password
		s.args = append(s.args, "--requirepass", password)
	}
}

// NewServer starts a redis-server on a loopback port, without persistence unless
// an option enables it. It is killed when the test ends.
func NewServer(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s := &Server{tb: tb, dir: tb.TempDir()}
	for _, o := range opts {
		o(s)
	}
	inst, err := launch(s.dir, s.args...)
	if err != nil {
		tb.Fatalf("redistest: %s", err)
	}
	s.inst, s.addr = inst, inst.addr
	tb.Cleanup(func() {
		if s.inst != nil {
			s.inst.kill()
		}
	})
	return s
}

// Addr is host:port. Restarts keep it.
func (s *Server) Addr() string { return s.addr }

// Dir is the data folder of the server.
func (s *Server) Dir() string { return s.dir }

// Pid is the process id of the running server.
func (s *Server) Pid() int { return s.running().proc.Pid() }

// URL is the URL of database 0, with the password if there is one.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.addr, Path: "/0"}
	if s.password != "" {
		u.User = url.UserPassword("", s.password)
	}
	return u.String()
}

// Client returns a client with go-redis's defaults on database 0, closed when the test ends.
func (s *Server) Client() *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.addr, Password: s.password})
	s.tb.Cleanup(func() { _ = rdb.Close() }) // the test may have closed it
	return rdb
}

// Kill ends the server with SIGKILL.
func (s *Server) Kill() {
	s.tb.Helper()
	s.running().kill()
	s.inst = nil
}

// Stop ends the server with SIGTERM; it syncs its append-only file.
func (s *Server) Stop() {
	s.tb.Helper()
	s.running().close()
	s.inst = nil
}

// Start starts the server again after Kill or Stop, with the same port and folder,
// and waits until it has loaded its data.
func (s *Server) Start() {
	s.tb.Helper()
	if s.inst != nil {
		s.tb.Fatal("redistest: the server is running")
	}
	_, text, err := net.SplitHostPort(s.addr)
	if err != nil {
		s.tb.Fatalf("redistest: split address %q: %s", s.addr, err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		s.tb.Fatalf("redistest: read port of %q: %s", s.addr, err)
	}
	if s.inst, err = launchAt(port, s.dir, s.args...); err != nil {
		s.tb.Fatalf("redistest: start again: %s", err)
	}
}

// Freeze stops the process with SIGSTOP: connections stay open without answers.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw continues a frozen process with SIGCONT.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig os.Signal) {
	s.tb.Helper()
	if err := s.running().proc.Signal(sig); err != nil {
		s.tb.Fatalf("redistest: %s", err)
	}
}

func (s *Server) running() *instance {
	s.tb.Helper()
	if s.inst == nil {
		s.tb.Fatal("redistest: the server is not running")
	}
	return s.inst
}
