package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the child when this process ends, however
// that ends. A process group of its own keeps a Ctrl-C in the terminal from it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
