//go:build unix && !linux

package child

import "syscall"

// attr gives the child a process group of its own (Ctrl-C must not end it
// before this process has drained). There is no death signal here.
func attr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
