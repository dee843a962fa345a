//go:build !unix

package child

import "syscall"

// attr has nothing to set on this platform.
func attr(syscall.Signal) *syscall.SysProcAttr { return nil }
