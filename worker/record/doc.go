// Package record stores the results of attempts: call rows, verdicts and results in SQL, and the reports of uploads in the
// ledger. While SQL cannot be written, settlements wait in an outbox in Redis.
//
// Packages worker and worker/upkeep share it.
package record
