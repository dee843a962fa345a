package auddsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Server is a Simulator with listeners.
type Server struct {
	*Simulator
	// URL is the base URL, without a slash at the end.
	URL string
	// EnterpriseURL ends in /enterprise/. With Config.EnterpriseAddr it is the root of the second listener.
	EnterpriseURL string

	servers []*http.Server
	serving errgroup.Group
	stopCtx func() bool
}

const readHeaderTimeout = 10 * time.Second

// TB is the part of testing.TB that Start needs, so that cmd/auddsim does not link package testing.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Start listens on a free loopback port until the test ends. Without a Config all tokens are valid and nothing is limited.
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
	t.Cleanup(func() { _ = s.Close() }) // a test can check the error with its own Close
	return s
}

// Listen opens addr ("127.0.0.1:0" for a free port) and serves until ctx ends or Close is called.
func Listen(ctx context.Context, addr string, cfg Config) (*Server, error) {
	sim, err := New(cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{Simulator: sim}
	main, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the simulator: %w", err)
	}
	listeners := []net.Listener{main}
	s.servers = []*http.Server{{Handler: sim, ReadHeaderTimeout: readHeaderTimeout}}
	s.URL = "http://" + main.Addr().String()
	s.EnterpriseURL = s.URL + "/enterprise/"
	if cfg.EnterpriseAddr != "" {
		second, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.EnterpriseAddr)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for enterprise: %w", err), main.Close())
		}
		atRoot := func(w http.ResponseWriter, r *http.Request) { sim.serve(w, r, PathEnterprise) }
		listeners = append(listeners, second)
		s.servers = append(s.servers, &http.Server{Handler: http.HandlerFunc(atRoot), ReadHeaderTimeout: readHeaderTimeout})
		s.EnterpriseURL = "http://" + second.Addr().String() + "/"
	}
	for i, l := range listeners {
		s.serving.Go(func() error {
			if err := s.servers[i].Serve(l); !errors.Is(err, http.ErrServerClosed) {
				s.closeAll()
				return fmt.Errorf("serve the simulator: %w", err)
			}
			return nil
		})
	}
	s.stopCtx = context.AfterFunc(ctx, s.closeAll)
	return s, nil
}

func (s *Server) closeAll() {
	s.Simulator.Close()
	for _, server := range s.servers {
		_ = server.Close() // an error leaves nothing to do: the listener is closed
	}
}

// Wait blocks until the server is closed, and returns the error if it failed.
func (s *Server) Wait() error { return s.serving.Wait() }

// Close closes every connection, also those of held requests. It waits until the listeners are closed and, for up to five
// seconds, until no request is running. It may be called more than once.
func (s *Server) Close() error {
	s.stopCtx()
	s.closeAll()
	err := s.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if poll(ctx, func() bool { return s.running() == 0 }) != nil {
		return errors.Join(err, errors.New("close the simulator: requests are still running"))
	}
	return err
}

// WaitHeld blocks until at least n requests are held and returns them. It fails when ctx ends.
func (s *Simulator) WaitHeld(ctx context.Context, n int) (held []Held, err error) {
	err = poll(ctx, func() bool { held = s.Held(); return len(held) >= n })
	if err != nil {
		return nil, fmt.Errorf("wait for %d held requests: %w", n, err)
	}
	return held, nil
}

// poll waits until done returns true. It fails when ctx ends.
func poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
