package child

import "syscall"

// attr gives the child its own process group, so that Ctrl-C in a terminal does not reach it.
func attr(death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
}
