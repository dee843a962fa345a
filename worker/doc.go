// Package worker runs tasks: it takes them from asynq, makes one call to AudD per attempt, and returns the verdict to
// asynq.
//
// handle.go has the steps of a delivery in their order. Other files have the steps themselves: delivery.go (decode),
// settle.go (stored verdicts and settlements), upload.go (the upload ledger), admit.go (permits), call.go (AudD) and
// answer.go (verdicts as errors for asynq). slot.go has the waits of a delivery, ending.go how a step ends it.
//
// new.go and worker.go build the worker, serve.go runs and stops it, and servers.go has its asynq servers. cordon.go keeps
// this worker off queues whose token AudD refuses. check.go, admin.go and metric.go have the checks at start, the HTTP
// listener and the metrics.
//
// Package upkeep has the jobs beside the deliveries, package record stores settlements for both. Only these packages log
// errors, and only worker exports metrics.
package worker
