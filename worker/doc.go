// Package worker runs tasks: it takes them from asynq, makes one call to AudD
// per attempt, and answers the queue with a verdict.
//
// A delivery goes through handle.go: decode → settled already? → acquire a
// permit → call → classify → decide → settle → release → answer. Its steps are
// in delivery.go (decode), settle.go (stored verdicts and settlements),
// upload.go (the upload ledger), admit.go (permits and waits), slot.go (waiting
// in a slot), call.go (AudD) and answer.go (verdicts in asynq's terms).
// ending.go is how a step ends a delivery.
//
// Around the pipeline: new.go and worker.go build and hold it, serve.go runs and
// stops it, servers.go has the asynq servers, cordon.go keeps this worker off
// queues with a refused token, and check.go, admin.go and metric.go are its
// checks at start, its HTTP listener and its metrics.
//
// Package upkeep has the jobs that run beside deliveries, package record what
// both share. Only these packages log errors, and only worker exports metrics.
package worker
