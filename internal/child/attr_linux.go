package child

import "syscall"

// attr gives the child a process group of its own, so that Ctrl-C in a terminal
// reaches this process alone: it drains its work and ends its children last.
func attr(death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
}
