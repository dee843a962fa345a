// Package uploads is the black box of `enqueue upload`: built commands, a real
// redis-server and the simulator's catalog. However often enqueuing and the
// workers are interrupted, each upload is sent once, and ledger and catalog
// agree. A proxy before Redis stops answering in the middle of a chunk, and only
// then comes a Ctrl-C.
package uploads
