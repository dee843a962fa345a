// Package record stores what became of the attempts of tasks: call rows,
// verdicts and results in SQL, and what an upload's attempt reports to the
// ledger. While SQL cannot be written, settlements wait in an outbox in Redis.
//
// It is what the delivery pipeline (package worker) and the maintenance jobs
// (package worker/upkeep) share.
package record
