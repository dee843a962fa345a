package devredis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrInUse is the error of a data folder that another instance uses.
var ErrInUse = errors.New("the embedded redis is in use")

// InUseError is ErrInUse with the folder and the process of the other instance.
type InUseError struct {
	Dir string
	Pid int // of the process that started it; 0 when unknown
}

// Error names the folder and, when known, the process.
func (e *InUseError) Error() string {
	who := "another process"
	if e.Pid > 0 {
		who = "process " + strconv.Itoa(e.Pid)
	}
	return fmt.Sprintf("%s: %s runs it on %s; stop that or choose another data folder", ErrInUse.Error(), who, e.Dir)
}

// Unwrap makes errors.Is(err, ErrInUse) true.
func (e *InUseError) Unwrap() error { return ErrInUse }

// orphanGrace is how long a start waits for the child of a killed process, which
// the kernel sends SIGTERM and which then syncs its data.
const orphanGrace = 5 * time.Second

// lockDir takes the lock of a data folder. The lock is held as long as the
// returned file is open here or in a child that inherited it. lockDir waits only
// when the process that took the lock has ended and its child still holds it.
func lockDir(ctx context.Context, dir, path string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, orphanGrace)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := tryLock(dir, path)
		var inUse *InUseError
		if !errors.As(err, &inUse) || inUse.Pid == 0 || alive(inUse.Pid) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

func tryLock(dir, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of data folder: %w", err)
	}
	held, err := flock(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock data folder %s: %w", dir, err)
	}
	if held {
		defer f.Close()
		return nil, &InUseError{Dir: dir, Pid: readPid(f)}
	}
	if err := writePid(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readPid is the process id that the holder wrote, 0 if it has not written it yet.
func readPid(f *os.File) int {
	buf := make([]byte, 20)
	n, _ := f.ReadAt(buf, 0) // the file is shorter than buf
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
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
