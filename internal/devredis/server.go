package devredis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"reprise/internal/devredis/redisproc"
)

// maxSocketPath is the longest socket path that is used: the kernel allows 107 bytes on Linux and 103 on
// macOS.
const maxSocketPath = 99

func startServer(ctx context.Context, dir string) (_ *Instance, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("resolve data folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data folder: %w", err)
	}
	lock, err := lockDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	socket, removeSocket, err := socketPath(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	proc, err := redisproc.Start(ctx, redisproc.Config{
		Dir: dir, Socket: socket, Log: filepath.Join(dir, "redis.log"),
		Args:  []string{"--appendonly", "yes", "--appendfsync", "everysec"},
		Files: []*os.File{lock}, // the lock lasts until the child has ended, even after this process
		Death: syscall.SIGTERM,
	})
	if err != nil {
		return nil, errors.Join(err, removeSocket(), lock.Close())
	}
	address := url.URL{Scheme: "unix", Path: socket, RawQuery: "db=0"}
	return &Instance{
		URL: address.String(), Durable: true,
		Note: "Tasks are kept in " + dir + " and survive a restart.",
		done: proc.Done(),
		end: sync.OnceValue(func() error {
			return errors.Join(proc.Stop(redisproc.StopTimeout), removeSocket(), unlock(lock))
		}),
	}, nil
}

// socketPath chooses the path of the socket and removes a stale one. The caller holds the folder's lock, so
// no server listens on it. remove deletes the folder of a socket that is not in dir, because its path there
// is too long.
func socketPath(dir string) (path string, remove func() error, err error) {
	path, remove = filepath.Join(dir, "redis.sock"), func() error { return nil }
	if len(path) > maxSocketPath {
		short, err := os.MkdirTemp("", "reprise-")
		if err != nil {
			return "", nil, fmt.Errorf("create folder for the redis socket: %w", err)
		}
		remove = func() error { return os.RemoveAll(short) }
		if path = filepath.Join(short, "redis.sock"); len(path) > maxSocketPath {
			err := fmt.Errorf("the paths of the redis socket in %s and %s are longer than %d bytes", dir, short, maxSocketPath)
			return "", nil, errors.Join(err, remove())
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", nil, errors.Join(fmt.Errorf("remove stale redis socket: %w", err), remove())
	}
	return path, remove, nil
}
