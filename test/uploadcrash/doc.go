// Package uploadcrash stops a worker process at every step of an upload, in every
// way a machine, a network or a database can stop it, and checks that AudD gets
// at most one send and that no task ends without a record.
//
// A cell of the matrix is a step (step_test.go) and a fault (fault_test.go). The
// worker is stopped from outside: by a gate in front of Redis or AudD that holds
// traffic (gate_test.go), by the simulator, or by a lock on the database.
//
// By default a random third of the cells runs; its seed is printed.
//
//	go test ./test/uploadcrash                                   a third
//	UPLOADCRASH_MATRIX_SEED=7 go test ./test/uploadcrash         the same third again
//	make crash-matrix                                            all cells (UPLOADCRASH_MATRIX=full)
//	UPLOADCRASH_MATRIX=full go test ./test/uploadcrash -run 'Matrix/kill/half'
package uploadcrash
