//go:build !linux

package child

import "syscall"

// attr gives the child its own process group. There is no death signal here.
func attr(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
