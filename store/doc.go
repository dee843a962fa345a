// Package store keeps tasks, results, calls and costs in SQL. The database is a SQLite file that several processes of
// one machine may share.
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
// The payload may hold a signed URL. Only Payload returns it; no error and no list contains it.
//
// # What a settlement does
//
// Settle is idempotent: repeating settlements in any order changes nothing. These rules hold for settlements that arrive
// twice, late or from two workers at once:
//
//  1. The attempt id identifies a call. The first row of an attempt stays, with one exception: the report of the attempt
//     itself replaces a presumed crash.
//  2. The first final verdict (done, archive, hold) of a generation stays, in task and result. A later, different
//     verdict adds only its call row. The exception is the same: a certain verdict of the same attempt replaces a
//     presumption (outcome crash or verdict hold).
//  3. The row of an unfinished task shows the latest decision. A decision that arrives late never reopens a finished
//     task.
//  4. A settlement of an older generation adds to call and result and does not change the task row. A settlement of a
//     newer generation raises the task row, which happens after a backup was restored.
//  5. A settlement of an unknown key creates the task row, because a task may be enqueued without Register.
//
// An archived task with final set is a tombstone: enqueuing its key again is refused with the reason, until Reopen.
// Reopen raises the generation of a finished task, and only from the generation that its caller read. It can therefore
// be repeated after a crash, and it does not affect a task with a call in flight.
//
// # Durability and waiting
//
// A write is on disk (WAL, synchronous=FULL) before it is acknowledged. One goroutine per process makes all writes. It
// puts waiting callers into one transaction, and the next group forms while the disk syncs. If one invalid row fails a
// group, every operation of the group runs again in its own transaction. Other processes wait for the write lock up to
// Config.BusyTimeout. Reads never wait for writes.
//
// IsUnavailable separates an unavailable store from a programming error. A settlement that failed because the store is
// unavailable belongs in the outbox, from which it is retried.
//
// # Portability
//
// The SQL is common to SQLite and PostgreSQL: ? placeholders that dialect.rebind rewrites, ON CONFLICT, TRUE and FALSE,
// BIGINT, BYTEA, TEXT. PostgreSQL still needs a driver, its error codes in IsUnavailable, and goose's advisory lock in
// place of the lock file.
package store
