// Package worker runs tasks: it takes them from asynq, makes one call to AudD per attempt, and returns the verdict
// to asynq.
//
// handle.go lists the steps of a delivery in order. The steps are in delivery.go (decode), settle.go (stored verdicts
// and settlements), upload.go (the upload ledger), admit.go (permits), call.go (AudD) and answer.go (verdicts as
// errors for asynq). A delivery waits in slot.go; ending.go says how it ends.
//
// new.go and worker.go build the worker, serve.go runs and stops it, and servers.go holds its asynq servers. cordon.go
// keeps this worker off queues whose token AudD refuses. check.go, admin.go and metric.go hold the checks at startup,
// the HTTP listener and the metrics.
//
// Package upkeep has the jobs beside the deliveries, and package record stores settlements for both packages. Only
// these packages log errors, and only worker exports metrics.
package worker
