//go:build !unix

package redisproc

import "syscall"

// sysProcAttr has nothing to set on this platform.
func sysProcAttr(syscall.Signal) *syscall.SysProcAttr { return nil }
