// Package fleet tests what several workers on one Redis do together: one circuit
// breaker, one probe, one budget and one pause for all of them. Workers run in
// the test process, each with its own connections and log; a worker that a test
// kills is a process of its own. Redis, the store and the simulator are real;
// the results are read from the simulator's log, the call rows, asynq's queues
// and the state of the gates.
package fleet
