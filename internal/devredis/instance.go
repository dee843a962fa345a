package devredis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"reprise/internal/devredis/redisproc"
)

// Kinds of instance.
const (
	KindServer = "redis-server" // a child process with its data on disk
	KindMemory = "miniredis"    // in this process, nothing on disk
)

// Config configures the embedded Redis. Start validates it.
type Config struct {
	// Dir is the data folder, created when missing (mode 0700). Required unless Ephemeral.
	Dir string
	// Ephemeral uses miniredis even with a redis-server on PATH. Default false.
	Ephemeral bool
	// StartTimeout bounds the wait until the child has loaded its data. Default one minute.
	StartTimeout time.Duration
	// StopTimeout is how long Close waits before it kills the child. Default 10 s.
	StopTimeout time.Duration
}

// DefaultConfig returns the defaults, without Dir.
func DefaultConfig() Config {
	return Config{StartTimeout: time.Minute, StopTimeout: 10 * time.Second}
}

// Validate names every wrong field.
func (c Config) Validate() error {
	var errs []error
	if c.Dir == "" && !c.Ephemeral {
		errs = append(errs, errors.New("embedded redis Dir: required unless Ephemeral is set"))
	}
	if c.StartTimeout <= 0 {
		errs = append(errs, fmt.Errorf("embedded redis StartTimeout %s: must be more than 0", c.StartTimeout))
	}
	if c.StopTimeout <= 0 {
		errs = append(errs, fmt.Errorf("embedded redis StopTimeout %s: must be more than 0", c.StopTimeout))
	}
	return errors.Join(errs...)
}

// Instance is a running embedded Redis. Its fields do not change; its methods
// are safe for concurrent use.
type Instance struct {
	// Network and Addr are its address: "unix" and a socket path, or "tcp" and host:port.
	Network, Addr string
	// URL is the address for redis.ParseURL, database 0. Other processes of this
	// user can use it while the instance runs.
	URL string
	// Kind is KindServer or KindMemory.
	Kind string
	// Durable reports whether tasks survive the end of this process.
	Durable bool
	// Note is a sentence for the user that says where tasks are kept.
	Note string

	done   <-chan struct{}
	once   sync.Once
	end    func() error
	endErr error
}

// Start runs the embedded Redis and returns when it answers. ctx bounds the
// start only. It returns an *InUseError when another instance uses the folder,
// else the child's failure with the end of its log.
func Start(ctx context.Context, cfg Config) (*Instance, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("start embedded redis: %w", err)
	}
	if cfg.Ephemeral {
		return startMemory("requested")
	}
	binary, err := redisproc.Find()
	if errors.Is(err, redisproc.ErrNoBinary) {
		return startMemory("no redis-server on PATH; `apt-get install redis-server` keeps them on disk")
	}
	if err != nil {
		return nil, err
	}
	return startServer(ctx, cfg, binary)
}

// Done is closed when the instance has ended, after Close or unexpectedly.
func (i *Instance) Done() <-chan struct{} { return i.done }

// Close ends the instance and waits for it; a child gets SIGTERM, then, after
// StopTimeout, SIGKILL. Calling it again returns the first call's error.
func (i *Instance) Close() error {
	i.once.Do(func() { i.endErr = i.end() })
	return i.endErr
}
