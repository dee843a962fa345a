// Package fleet tests what several workers on one Redis do together: one
// breaker, one probe, one budget, one pause for all of them. Workers run in
// this process, each with its own connections and log, or, where one has to be
// killed, as a process of its own. Redis, the store and the simulator are
// real; what happened is read from the simulator's log, the call rows, asynq's
// queues and the gates' state.
package fleet
