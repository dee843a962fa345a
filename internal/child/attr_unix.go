//go:build unix && !linux

package child

import "syscall"

// attr gives the child a process group of its own, so that Ctrl-C in a terminal
// does not reach it: this process drains its work first. There is no death
// signal here.
func attr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
