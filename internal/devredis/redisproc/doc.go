// Package redisproc runs a redis-server as a child that does not outlive this
// process: the embedded default of `worker dev` and the servers of tests are
// started, watched and ended here.
//
// On Linux the kernel signals the child when this process dies, however it
// dies. Elsewhere a child survives a parent that was killed with SIGKILL.
package redisproc
