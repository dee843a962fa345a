package devredis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"reprise/internal/devredis/redisproc"
)

// maxSocketPath is the longest socket path that is used: the kernel allows 107
// bytes on Linux and 103 on macOS.
const maxSocketPath = 99

func startServer(ctx context.Context, cfg Config, binary string) (*Instance, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("resolve data folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data folder: %w", err)
	}
	var files closers
	lock, err := lockDir(ctx, dir, filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	files.add(lock.Close)
	socket, err := socketPath(dir, &files)
	if err != nil {
		return nil, errors.Join(err, files.close())
	}
	log, err := os.OpenFile(filepath.Join(dir, "redis.log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open redis log: %w", err), files.close())
	}
	files.add(log.Close)
	proc, err := redisproc.Start(redisproc.Config{
		Binary: binary, Args: serverArgs(dir, socket),
		Network: "unix", Addr: socket, Log: log,
		Files:       []*os.File{lock}, // the lock lasts until the child has ended, even after this process
		DeathSignal: syscall.SIGTERM,
	})
	if err != nil {
		return nil, errors.Join(err, files.close())
	}
	ready, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	if err := proc.WaitReady(ready); err != nil {
		return nil, errors.Join(err, proc.Stop(cfg.StopTimeout), files.close())
	}
	return &Instance{
		Network: "unix", Addr: socket, URL: socketURL(socket),
		Kind: KindServer, Durable: true,
		Note: "Tasks are kept in " + dir + " and survive a restart.",
		done: proc.Done(),
		end: func() error {
			return errors.Join(proc.Stop(cfg.StopTimeout), files.close())
		},
	}, nil
}

func serverArgs(dir, socket string) []string {
	return []string{
		"--port", "0", "--unixsocket", socket, "--unixsocketperm", "700",
		"--dir", dir, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
		"--maxmemory-policy", "noeviction", "--daemonize", "no", "--logfile", "",
	}
}

// socketPath chooses the path of the socket and removes a stale one. The caller
// holds the folder's lock, so no server listens on it.
func socketPath(dir string, files *closers) (string, error) {
	path := filepath.Join(dir, "redis.sock")
	if len(path) > maxSocketPath {
		short, err := os.MkdirTemp("", "reprise-")
		if err != nil {
			return "", fmt.Errorf("create folder for the redis socket: %w", err)
		}
		files.add(func() error { return os.RemoveAll(short) })
		if path = filepath.Join(short, "redis.sock"); len(path) > maxSocketPath {
			return "", fmt.Errorf("the paths of the redis socket in %s and %s are longer than %d bytes", dir, short, maxSocketPath)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("remove stale redis socket: %w", err)
	}
	return path, nil
}

// socketURL is unix:///path?db=0 with the path escaped.
func socketURL(path string) string {
	u := url.URL{Scheme: "unix", Path: path, RawQuery: "db=0"}
	return u.String()
}

// closers are the functions that undo a start; they run last in, first out.
type closers struct{ stack []func() error }

func (c *closers) add(f func() error) { c.stack = append(c.stack, f) }

func (c *closers) close() error {
	var errs []error
	for _, undo := range slices.Backward(c.stack) {
		errs = append(errs, undo())
	}
	c.stack = nil
	return errors.Join(errs...)
}
