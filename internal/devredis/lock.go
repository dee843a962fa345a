package devredis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// orphanGrace is how long a start waits for the child of a killed process. The kernel sends that child
// SIGTERM, and the child then syncs its data.
const orphanGrace = 5 * time.Second

// lockDir takes the lock of a data folder. The lock is held as long as the returned file is open here or in a
// child that inherited it. lockDir waits only when the process that took the lock has ended and its child
// still holds it.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of data folder: %w", err)
	}
	if err := takeLock(ctx, f, dir); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// unlock releases the lock at once, even if a process that was just forked here still has a copy of the file.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

func takeLock(ctx context.Context, f *os.File, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, orphanGrace)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return writePid(f)
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock data folder %s: %w", dir, err)
		}
		holder := readPid(f)
		if holder == 0 || !errors.Is(syscall.Kill(holder, 0), syscall.ESRCH) {
			return inUse(dir, holder)
		}
		select {
		case <-ctx.Done():
			return inUse(dir, holder)
		case <-tick.C:
		}
	}
}

// inUse is the error for a folder that another process has locked; pid 0 is unknown.
func inUse(dir string, pid int) error {
	who := "another process"
	if pid > 0 {
		who = "process " + strconv.Itoa(pid)
	}
	return fmt.Errorf("the embedded redis is in use: %s runs it on %s; stop that process or choose another data folder", who, dir)
}

// readPid returns the process id that the holder wrote, 0 if it has not written it yet.
func readPid(f *os.File) int {
	buf := make([]byte, 20)
	n, _ := f.ReadAt(buf, 0) // the file is shorter than buf
	pid, _ := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	return pid
}

func writePid(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("empty lock file: %w", err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("write process id to lock file: %w", err)
	}
	return nil
}
