// Package uploadcrash stops a worker process at every step of an upload, in
// every way a machine, a network or a database can stop it, and checks that
// AudD saw at most one send and that no task ends silently.
//
// A cell of the matrix is a step (step_test.go) and a fault (fault_test.go).
// Stops come from outside the worker: a gate in front of Redis or AudD that
// holds what passes (gate_test.go), the simulator, or a lock in the database.
//
// A third of the cells runs by default, chosen by a seed that is printed:
//
//	go test ./test/uploadcrash                                  a third
//	UPLOADCRASH_MATRIX_SEED=7 go test ./test/uploadcrash            that third again
//	UPLOADCRASH_MATRIX=full go test ./test/uploadcrash              all
//	go test ./test/uploadcrash -run 'Matrix/kill/half'          with UPLOADCRASH_MATRIX=full: those
package uploadcrash
