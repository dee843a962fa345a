// Package redisproc runs a redis-server as a child process: the embedded Redis
// of `worker dev` and the servers of tests.
//
// On Linux the kernel signals the child when this process ends, even by SIGKILL.
// Elsewhere a child survives a parent that was killed with SIGKILL.
package redisproc
