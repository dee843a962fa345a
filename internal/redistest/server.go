package redistest

import (
	"context"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"reprise/internal/devredis/redisproc"
)

// Server is a redis-server for one test. Its methods fail the test on an error, so call them from the test's
// goroutine.
type Server struct {
	tb       testing.TB
	conf     redisproc.Config
	proc     *redisproc.Process
	password string
}

// Option is an option of NewServer.
type Option func(*Server)

// AOF enables the append-only file, which keeps data over Kill and Start; fsync is always, everysec or no.
func AOF(fsync string) Option {
	return func(s *Server) { s.conf.Args = append(s.conf.Args, "--appendonly", "yes", "--appendfsync", fsync) }
}

// Password makes the server require a password; URL contains it.
func Password(password string) Option {
	return func(s *Server) {
		s.password = password
		s.conf.Args = append(s.conf.Args, "--requirepass", password)
	}
}

// config is a server that logs to its data folder.
func config(dir string, args ...string) redisproc.Config {
	return redisproc.Config{Dir: dir, Log: filepath.Join(dir, "redis.log"), Args: args, Death: syscall.SIGKILL}
}

// NewServer starts a redis-server on a loopback port, without persistence unless an option enables it. It is
// killed when the test ends.
func NewServer(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s := &Server{tb: tb, conf: config(tb.TempDir())}
	for _, o := range opts {
		o(s)
	}
	s.Start()
	tb.Cleanup(s.Kill)
	return s
}

// Start starts the server again after Kill or Stop, with the same port and folder, and waits until it has
// loaded its data.
func (s *Server) Start() {
	s.tb.Helper()
	proc, err := redisproc.Start(context.Background(), s.conf)
	if err != nil {
		s.tb.Fatalf("redistest: %s", err)
	}
	s.proc, s.conf.Port = proc, proc.Port
}

// Kill ends the server with SIGKILL.
func (s *Server) Kill() { s.proc.Kill() }

// Stop ends the server with SIGTERM; it syncs its append-only file.
func (s *Server) Stop() {
	s.tb.Helper()
	if err := s.proc.Stop(redisproc.StopTimeout); err != nil {
		s.tb.Fatalf("redistest: %s", err)
	}
}

// Addr returns host:port. Restarts keep it.
func (s *Server) Addr() string { return s.proc.Addr }

// Dir returns the folder of the server's data and log.
func (s *Server) Dir() string { return s.conf.Dir }

// URL returns the URL of database 0, with the password if there is one.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.proc.Addr, Path: "/0"}
	if s.password != "" {
		u.User = url.UserPassword("", s.password)
	}
	return u.String()
}

// Client returns a client with go-redis's defaults on database 0, closed when the test ends.
func (s *Server) Client() *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.proc.Addr, Password: s.password})
	s.tb.Cleanup(func() { _ = rdb.Close() }) // the test may have closed it
	return rdb
}
