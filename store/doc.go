// Package store is the truth about money and outcomes, in SQL: a SQLite file
// that several processes of one machine may share.
//
// # Tables
//
//	task        one row per key: where the work stands now, and its payload
//	submission  one row per enqueued wish (batch, external id, metadata); many may share a task
//	result      one row per finished generation of a key: the history of verdicts
//	call        one row per call to AudD: source, outcome, units, price, cost
//	probe       the row Ping rewrites
//
// Instants are milliseconds since the Unix epoch, UTC. What is not known (a
// price, a cost, an instant that has not come) is NULL, never 0. The payload may
// hold a signed URL: it is read only by Payload and appears in no error and in
// no list.
//
// # What a settlement does
//
// Settle is idempotent: settling any of what was settled again, in any order,
// changes nothing. These rules make it so, whatever arrives twice, late or from
// two workers at once:
//
//  1. A call is its attempt id. The first row of an attempt stays, except that a
//     row presumed to be a crash yields to what the attempt itself reports
//     later: the late settle wins.
//  2. The first finished verdict (done, archive, hold) of a generation stays, in
//     task and result. A later, different one keeps only its call row. Again a
//     presumption (outcome crash, or verdict hold) yields to a certain verdict
//     of the same attempt, and only to that.
//  3. While a task is unfinished its row shows the decision with the latest
//     time; a decision that arrives late never opens a finished task.
//  4. A settlement of an older generation adds to call and result and leaves the
//     task row alone; one of a newer generation (after a restored backup) raises it.
//  5. A settlement of an unknown key makes the task row: a raw task may be
//     enqueued without Register.
//
// An archived task with final set is a tombstone: enqueuing its key again is
// refused with the reason, until Reopen. Reopen raises the generation of a
// finished task, and only from the generation its caller saw, so that it can be
// repeated after a crash and never overtakes a call that is on its way.
//
// # Durability and waiting
//
// A write is on the disk (WAL, synchronous=FULL) before it is acknowledged. All
// writes of a process go through one goroutine, which puts the callers that
// wait into one transaction: the next group forms while the disk syncs. A group
// that fails because of one bad row is run again one by one. Other processes
// wait for the write lock up to Config.BusyTimeout. Reads never wait for writes.
//
// IsUnavailable tells "not now" (put the settlement into the outbox, come back)
// from a mistake in the program.
//
// # Portability
//
// The SQL is common to SQLite and PostgreSQL: ? placeholders rewritten in one
// place (dialect.rebind), ON CONFLICT, TRUE and FALSE, BIGINT, BYTEA, TEXT. What
// PostgreSQL still needs is a driver, its error codes in IsUnavailable, and
// goose's advisory lock in place of the lock file.
package store
