// Package store keeps tasks, results, calls and costs in SQL. The database is a SQLite file that several processes on
// one machine can share.
//
// # Tables
//
//	task        one row per key: its current status and payload
//	submission  one row per enqueued input (batch, external id, metadata); many may share a task
//	result      one row per finished generation of a task: the history of verdicts
//	call        one row per call to AudD: source, outcome, units, price, cost
//	probe       the row that Ping rewrites
//
// Times are milliseconds since the Unix epoch, UTC. An unknown value (a price, a cost, a future time) is NULL, never 0.
// The payload may contain a signed URL. Only Payload returns the payload; errors and lists never contain it.
//
// # What a settlement does
//
// Settle is idempotent: repeating settlements in any order changes nothing. These rules hold for settlements that arrive
// twice, late or from two workers at once:
//
//  1. The attempt id identifies a call. An attempt's first call row is kept, unless it is a presumed crash. The
//     attempt's own report replaces a presumed crash.
//  2. A generation's first final verdict (done, archive, hold) is kept in task and result, unless it is a presumption
//     (outcome crash or verdict hold). A certain verdict of the same attempt replaces a presumption. Any other later
//     verdict adds only its call row.
//  3. The row of an unfinished task shows the latest decision. A late decision never reopens a finished task.
//  4. A settlement of an older generation adds call and result rows and does not change the task row. A settlement of
//     a newer generation raises the generation of the task row, for example after a backup was restored.
//  5. A settlement of an unknown key creates the task row, because a task may be enqueued without Register.
//
// An archived task with final set is a tombstone. Enqueuing its key is refused with the reason until Reopen is called.
// Reopen starts the next generation of a finished task. It does nothing if the generation is not the one that the caller
// read, so it can be repeated after a crash. It never changes an unfinished task.
//
// # Durability and waiting
//
// A write is on disk (WAL, synchronous=FULL) before it is acknowledged. One goroutine per process makes all writes. It
// runs all waiting operations in one transaction, and the next group forms while the disk syncs. If an invalid row fails
// the group, every operation of the group runs again in its own transaction. Other processes wait for the write lock for
// at most Config.BusyTimeout. Reads never wait for writes.
//
// IsUnavailable distinguishes an unavailable store from a programming error. If the store is unavailable, the caller
// puts the settlement into the outbox, which retries it.
//
// # Portability
//
// The SQL works in SQLite and PostgreSQL: ? placeholders, which dialect.rebind rewrites, ON CONFLICT, TRUE and FALSE,
// BIGINT, BYTEA, TEXT. PostgreSQL still needs a driver, its error codes in IsUnavailable, and goose's advisory lock in
// place of the lock file.
package store
