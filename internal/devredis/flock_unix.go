//go:build unix

package devredis

import (
	"errors"
	"os"
	"syscall"
)

// flock takes an exclusive lock without waiting. held reports that another
// process has it.
func flock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// alive reports whether a process with that id exists.
func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
