// Package blackbox tests Reprise as users run it: real worker, enqueue and
// simulator processes, a real redis-server with an append-only file, a SQLite
// file, and signals, network cuts and locks from outside. No test looks into a
// process; the results are read from the simulator's bill, the store, Redis,
// exit codes and output.
//
// The commands are built once per run, with the race detector when the tests
// have it. A data race that a process reports fails its test.
package blackbox
