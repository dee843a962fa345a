package auddsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is a simulator that listens.
type Server struct {
	*Simulator
	// URL is the base URL, without a slash at its end.
	URL string
	// EnterpriseURL ends in /enterprise/, or is the root of the second listener with Config.EnterpriseAddr.
	EnterpriseURL string

	servers []*http.Server
	stopped chan struct{}
	err     error
	stopCtx func() bool
}

// TB is the part of testing.TB that Start needs, so that shipping the simulator does not ship package testing.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Start listens on a free loopback port until the test ends. Without a Config it takes any token and has no limits.
func Start(t TB, cfg ...Config) *Server {
	t.Helper()
	var c Config
	if len(cfg) > 0 {
		c = cfg[0]
	}
	s, err := Listen(context.Background(), "127.0.0.1:0", c)
	if err != nil {
		t.Fatalf("start simulator: %s", err.Error())
	}
	t.Cleanup(func() { _ = s.Close() }) // a test that cares about the error calls Close itself
	return s
}

// Listen opens addr ("127.0.0.1:0" for a free port) and serves until ctx ends or Close is called.
func Listen(ctx context.Context, addr string, cfg Config) (*Server, error) {
	sim, err := New(cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{Simulator: sim, stopped: make(chan struct{})}
	main, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the simulator: %w", err)
	}
	listeners, handlers := []net.Listener{main}, []http.Handler{sim}
	s.URL = "http://" + main.Addr().String()
	s.EnterpriseURL = s.URL + "/enterprise/"
	if cfg.EnterpriseAddr != "" {
		second, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.EnterpriseAddr)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for enterprise: %w", err), main.Close())
		}
		listeners, handlers = append(listeners, second), append(handlers, sim.EnterpriseHandler())
		s.EnterpriseURL = "http://" + second.Addr().String() + "/"
	}
	results := make(chan error, len(listeners))
	for i, l := range listeners {
		server := &http.Server{Handler: handlers[i], ReadHeaderTimeout: readHeaderTimeout}
		s.servers = append(s.servers, server)
		go func() { results <- server.Serve(l) }()
	}
	go s.supervise(results)
	s.stopCtx = context.AfterFunc(ctx, s.shut)
	return s, nil
}

// supervise waits for the listeners; the first that fails takes the others down.
func (s *Server) supervise(results <-chan error) {
	defer close(s.stopped)
	for range s.servers {
		if err := <-results; !errors.Is(err, http.ErrServerClosed) {
			s.err = errors.Join(s.err, fmt.Errorf("serve the simulator: %w", err))
			s.shut()
		}
	}
}

// shut drops every connection at once.
func (s *Server) shut() {
	s.Simulator.Close()
	for _, server := range s.servers {
		_ = server.Close() // its listener is closed in any case; connections have nothing left to lose
	}
}

// Wait blocks until the server was closed and returns why it failed, if it did.
func (s *Server) Wait() error {
	<-s.stopped
	return s.err
}

// Close drops every connection, held requests included, and waits until the listeners are closed and, for up to five
// seconds, until no request is running. It may be called more than once.
func (s *Server) Close() error {
	s.stopCtx()
	s.shut()
	err := s.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.log.running() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, errors.New("close the simulator: requests are still running"))
		}
	}
	return err
}

// WaitHeld blocks until at least n requests are held and returns them, or fails with what ends ctx.
func (s *Simulator) WaitHeld(ctx context.Context, n int) ([]Held, error) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if held := s.Held(); len(held) >= n {
			return held, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %d held requests: %w", n, ctx.Err())
		}
	}
}
