// Package idempotency is the upload ledger: an upload is sent at most once, or
// an operator decides.
//
// AudD bills every upload, overwrites its audio_id slot, and cannot list, read
// or delete slots. AudD therefore cannot tell whether an upload arrived; this
// ledger, in SQL beside the results, is the only record. It needs nothing from
// Redis, which may be lost.
//
// # States
//
// A key (source + audio_id + content) has a generation, from 0. In each
// generation one attempt may send: the one that inserts the row (key,
// generation), which is the latch. The state of that row:
//
//	Claim ──► free ── Latch ──► sent ──┬── AudD accepted it ──────────► settled
//	           ▲                       ├── AudD rejected it ──────────► rejected
//	           │                       ├── its attempt: not sent, or ─► released ─┐
//	           │                       │   refused before work                    │
//	           │                       └── unknown answer, or none by ► uncertain │
//	           │                           sent_at + timeout + 30 s       │       │
//	           ├────── operator: retry, from sent_at + timeout + 1 min ─┘       │
//	           └──────── generation + 1 ──────────────────────────────────────────┘
//
//	uncertain ──► settled   late answer of the same attempt, verified, or an operator
//	uncertain ──► rejected  late answer of the same attempt
//
// An operator may also reopen a settled or rejected upload (force), and content
// that was replaced in its slot and is claimed again is reopened: both raise
// the generation and are audited.
//
// How an attempt's report changes its own send (* = too late to count, recorded
// in the audit trail only):
//
//	reports →   settled     released    rejected    uncertain
//	sent        settled     released    rejected    uncertain
//	uncertain   settled     uncertain*  rejected    uncertain
//	settled     settled     settled*    settled*    settled
//	rejected    rejected*   rejected    rejected    rejected*
//	released    released*   released    released*   released*
//
// A late "not sent" does not release the latch: the task is already archived as
// uncertain, so nothing would send it again. An operator retries it.
//
// # Why two automatic sends of one key cannot happen
//
// Claim: between two sends of a key either the attempt of the first one
// reported that it sent nothing, or was refused before work, or an operator acted.
//
//  1. Every change of the ledger is one transaction that first updates the
//     ledger's single row. Both databases lock it until the commit, so changes
//     happen one after another and each reads what the one before it wrote.
//  2. A send follows a Latch that returned nil, made for this one HTTP request
//     (an attempt is one call; its id is never used for another). Latch
//     inserts (key, current generation), which is the primary key: in one
//     generation one attempt gets it. It is on the disk before Latch returns
//     (SQLite synchronous=FULL; on PostgreSQL synchronous_commit must be on),
//     so no crash forgets it. Rows are never deleted.
//  3. So two sends of a key have two generations. The generation rises in four
//     places: Conclude(tasks.LatchReleased) of a send that is sent, by its own attempt;
//     Resolve(AsRetry); Reopen; and a replacing Claim of settled content. The
//     last three need an operator. Neither time, nor another worker, nor a crash
//     raises it: Expire only ends the wait.
//  4. An attempt reports tasks.LatchReleased only after its call is over: the client
//     seals the body before it returns, so no byte leaves afterwards; and the
//     answers that count as "refused before work" are a closed list
//     (retrypolicy's latch column).
//  5. A Latch that failed in whatever way makes no call. Its row may stand if
//     only the reply was lost; then the key waits, and is released by its
//     attempt or becomes uncertain. The report cannot overtake that commit:
//     the row of 1 is locked until it is decided.
//
// A worker that is frozen at any point, for any time, changes none of this: before
// the latch it finds the row of the attempt that sent meanwhile; after the latch
// the row is its own and no other attempt raises the generation.
//
// # What the waits are for
//
// The waits are not part of the argument above: they decide how soon an operator
// sees an uncertain upload and how much a retry risks. sent_at is read before
// the latch. The first byte leaves at most 5 s later (Latched.Fresh: the larger
// of wall and monotonic clock) and the call ends by its timeout, so at sent_at +
// timeout + 30 s a running worker has reported. An operator's retry waits one
// minute; the remaining risk is a worker that froze between Fresh and the first byte,
// or in the body, for longer than that, and clocks of machines that differ by
// more.
//
// # Slots
//
// A slot (source, audio_id) has one owner. Other content is refused unless it
// replaces; from then on the earlier content is refused by Latch, so a task left
// in the queue cannot overwrite what replaced it, and while one content is in
// flight the other waits (*SlotBusyError), because it is unknown which of the two
// AudD would keep. A slot whose only content AudD rejected is free again.
//
// # A restored backup
//
// A ledger restored from a backup has forgotten sends. Therefore each latch
// gives a Mark (ledger id, sequence, attempt id); the sender remembers the mark
// with the largest sequence outside (Redis) before its first byte and gives it
// to the next Latch, which fails with *BehindError unless this ledger has that
// very mark. The sequence alone is not enough: a restored ledger that is used
// again soon reaches the same number. An operator checks what is missing and calls
// Adopt, which jumps the sequence above the remembered one. Without a remembered mark
// (Redis lost) the latch succeeds.
//
// # Portability
//
// The SQL is common to SQLite and PostgreSQL: $1 placeholders (SQLite takes them
// too), ON CONFLICT, RETURNING. Instants are milliseconds since the Unix epoch.
package idempotency
