// Package idempotency is the upload ledger. An upload is sent at most once, unless an operator decides otherwise.
//
// AudD bills every upload and overwrites the upload's audio_id slot. AudD cannot list, read or delete slots, so it cannot
// tell whether an upload arrived. This ledger, in SQL beside the results, is the only record. It needs nothing from Redis,
// which may be lost.
//
// # States
//
// A key (source + audio_id + content) has a generation, which starts at 0. In each generation one attempt may send: the one
// that inserts the row (key, generation). The row is the latch. Its states:
//
//	Claim ──► free ── Latch ──► sent ──┬── AudD accepted it ───────────► settled
//	           ▲                       ├── AudD rejected it ───────────► rejected
//	           │                       ├── not sent, or refused ───────► released ──┐
//	           │                       │   before any work                          │
//	           │                       └── unclear answer, or none ────► uncertain  │
//	           │                           by sent_at + timeout + 30 s       │      │
//	           ├───── an operator retries, from sent_at + timeout + 1 min ───┘      │
//	           └───── generation + 1 ───────────────────────────────────────────────┘
//
//	uncertain ──► settled   a late answer to the same attempt, a verification, or an operator
//	uncertain ──► rejected  a late answer to the same attempt
//
// Two more actions raise the generation, and are audited. An operator reopens a settled or rejected upload (force). Content
// that was replaced in its slot is claimed again.
//
// The table shows how an attempt's report changes its own send. A star means that the report came too late to count and is
// only written to the audit trail.
//
//	reports →   settled     released    rejected    uncertain
//	sent        settled     released    rejected    uncertain
//	uncertain   settled     uncertain*  rejected    uncertain
//	settled     settled     settled*    settled*    settled
//	rejected    rejected*   rejected    rejected    rejected*
//	released    released*   released    released*   released*
//
// A late "not sent" does not release the latch, because the task is archived as uncertain already and nothing would send it
// again. An operator retries it.
//
// # Why two automatic sends of one key cannot happen
//
// Claim: between two sends of a key, either the first attempt reported that it sent nothing or was refused before any work,
// or an operator acted.
//
//  1. Every change of the ledger is one transaction that first updates the ledger's single row. The database locks the row
//     until the commit. Changes therefore happen one after another, and each reads what the one before it wrote.
//  2. A send follows a Latch that returned nil. The Latch was made for this one HTTP request, because an attempt is one call
//     and its id is never used for another. Latch inserts the primary key (key, current generation), so one attempt gets it
//     in each generation. The row is on disk before Latch returns (SQLite synchronous=FULL; PostgreSQL needs
//     synchronous_commit on), so a crash does not lose it. Rows are never deleted.
//  3. Two sends of a key therefore have two generations. Four actions raise the generation: Conclude(tasks.LatchReleased) of
//     a sent row by its own attempt, Resolve(AsRetry), Reopen, and a replacing Claim of settled content. An operator makes
//     the last three. Time, other workers and crashes do not raise it: Expire only makes the send uncertain.
//  4. An attempt reports tasks.LatchReleased only after its call is over. The client seals the body before it returns, so no
//     byte leaves afterwards. The answers that count as "refused before any work" are a closed list (retrypolicy's latch
//     column).
//  5. A Latch that failed for any reason makes no call. Its row may exist, if only the reply of the commit was lost. The key
//     then waits until its attempt releases it or it becomes uncertain. The report cannot overtake the commit, because the
//     commit holds the lock of step 1.
//
// A worker that freezes at any point, for any time, changes none of this. Before the latch, it finds the row of the attempt
// that sent meanwhile. After the latch, the row is its own, and no other attempt raises the generation.
//
// # What the waits are for
//
// The waits are not part of the argument above. They decide how soon an operator sees an uncertain upload and how much a
// retry risks. sent_at is read before the latch. The first byte leaves at most 5 s later (Latched.Fresh), and the call ends
// by its timeout. At sent_at + timeout + 30 s a running worker has therefore reported. An operator's retry waits one minute.
// The remaining risks are a worker that froze for longer than this between Fresh and the end of the body, and clocks that
// differ by more than this between machines.
//
// # Slots
//
// A slot (source, audio_id) has one owner. Other content is refused unless it replaces the owner. Latch then refuses the
// replaced content, so a task left in the queue cannot overwrite its replacement. While one content is in flight to a slot,
// other content waits (*SlotBusyError), because it is unknown which of two uploads AudD would keep. A slot whose only content
// AudD rejected is free again.
//
// # A restored backup
//
// A ledger that was restored from a backup lacks the latest sends. Each latch therefore returns a Mark (ledger id, sequence,
// attempt id). The sender stores the mark with the largest sequence outside the database (in Redis) before its first byte,
// and passes it to the next Latch. Latch fails with *BehindError unless this ledger has exactly this mark. The sequence alone
// is not enough, because a restored ledger soon reaches the same number. An operator checks what is missing and calls Adopt,
// which raises the sequence above the remembered one. If no mark is remembered (Redis was lost), the latch succeeds.
//
// # Portability
//
// The SQL works on SQLite and PostgreSQL: $1 placeholders (SQLite accepts them too), ON CONFLICT, RETURNING. Times are
// milliseconds since the Unix epoch.
package idempotency
