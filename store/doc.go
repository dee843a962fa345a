// Package store keeps tasks, results, calls and costs in SQL: a SQLite file that
// several processes of one machine may share.
//
// # Tables
//
//	task        one row per key: its current status and payload
//	submission  one row per enqueued input (batch, external id, metadata); many may share a task
//	result      one row per finished generation of a key: the history of verdicts
//	call        one row per call to AudD: source, outcome, units, price, cost
//	probe       the row Ping rewrites
//
// Instants are milliseconds since the Unix epoch, UTC. An unknown
// value (a price, a cost, a future instant) is NULL, never 0. The payload may
// hold a signed URL: it is read only by Payload and appears in no error and in
// no list.
//
// # What a settlement does
//
// Settle is idempotent: repeating settlements in any order changes nothing. These
// rules hold for settlements that arrive twice, late or from two workers at once:
//
//  1. A call is its attempt id. The first row of an attempt stays, except that
//     the later report of the attempt itself replaces a row presumed to be a crash.
//  2. The first finished verdict (done, archive, hold) of a generation stays, in
//     task and result. A later, different one keeps only its call row. Again a
//     certain verdict of the same attempt, and only that, replaces a presumption
//     (outcome crash, or verdict hold).
//  3. While a task is unfinished its row shows the decision with the latest
//     time; a decision that arrives late never opens a finished task.
//  4. A settlement of an older generation adds to call and result and does not
//     change the task row; one of a newer generation (after a restored backup) raises it.
//  5. A settlement of an unknown key creates the task row: a raw task may be
//     enqueued without Register.
//
// An archived task with final set is a tombstone: enqueuing its key again is
// refused with the reason, until Reopen. Reopen raises the generation of a
// finished task, and only from the generation that its caller read, so that it can be
// repeated after a crash and does not interfere with a call in flight.
//
// # Durability and waiting
//
// A write is on disk (WAL, synchronous=FULL) before it is acknowledged. All
// writes of a process go through one goroutine, which puts waiting callers
// into one transaction: the next group forms while the disk syncs. If one bad row
// fails a group, its writes run again one by one. Other processes
// wait for the write lock up to Config.BusyTimeout. Reads never wait for writes.
//
// IsUnavailable distinguishes an unavailable store (put the settlement into the
// outbox and retry) from a programming error.
//
// # Portability
//
// The SQL is common to SQLite and PostgreSQL: ? placeholders rewritten in one
// place (dialect.rebind), ON CONFLICT, TRUE and FALSE, BIGINT, BYTEA, TEXT. What
// PostgreSQL still needs is a driver, its error codes in IsUnavailable, and
// goose's advisory lock in place of the lock file.
package store
