// Package redisproc runs a redis-server as a child process: the embedded Redis of `worker dev` and the
// servers of tests and benchmarks. Package child says when the server ends with this process.
package redisproc
