// Package uploads is the black box of `enqueue upload`: built commands, a real
// redis-server and the simulator's catalog. However often enqueuing and the
// workers are interrupted, each upload is sent once, and ledger and catalog
// agree. A Ctrl-C is timed by a proxy before Redis that stops answering, so
// that it comes in the middle of a chunk.
package uploads
