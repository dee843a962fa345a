//go:build unix && !linux

package redisproc

import "syscall"

// sysProcAttr gives the child a process group of its own (Ctrl-C must not end
// it before this process has drained). There is no death signal here.
func sysProcAttr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
