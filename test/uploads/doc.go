// Package uploads tests `enqueue upload` as users run it: built commands, a real
// redis-server and the simulator's catalog. However often enqueue and the workers
// are interrupted, each upload is sent once, and the ledger and the catalog agree.
package uploads
