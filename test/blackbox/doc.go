// Package blackbox tests Reprise as its users run it: real worker, enqueue and
// simulator processes, a real redis-server with an append-only file, a SQLite
// file, and signals, cuts and locks from outside. Nothing here reaches into a
// process of ours; what happened is read from the simulator's bill, the store,
// Redis, exit codes and output.
//
// The commands are built once per run, with the race detector when the tests
// have it; a race reported by any process fails its test.
package blackbox
