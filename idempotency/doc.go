// Package idempotency is the upload ledger: an upload is sent at most once, or
// a person decides.
//
// AudD bills every upload, overwrites its audio_id slot, and cannot list, read
// or delete slots. So nobody can ask AudD whether an upload arrived; this
// ledger, in SQL beside the results, is the truth. Redis may be lost whole: it
// holds nothing the ledger needs.
//
// # States
//
// A key (source + audio_id + content) has a generation, from 0. In each
// generation one attempt may send: the one that inserts the row (key,
// generation), which is the latch. The state of that row:
//
//	Claim ──► free ── Latch ──► sent ──┬── AudD took it ──────────────► settled
//	           ▲                       ├── AudD said no ──────────────► rejected
//	           │                       ├── its attempt: not sent, or ─► released ─┐
//	           │                       │   refused before work                    │
//	           │                       └── unknown answer, or none by ► uncertain │
//	           │                           sent_at + timeout + 30 s       │       │
//	           ├──────── a person: retry, from sent_at + timeout + 1 min ─┘       │
//	           └──────── generation + 1 ──────────────────────────────────────────┘
//
//	uncertain ──► settled   late answer of the same attempt, verified, or a person
//	uncertain ──► rejected  late answer of the same attempt
//
// A person may also reopen what is settled or rejected (force), and content
// that was replaced in its slot and is claimed again is reopened: both raise
// the generation and are audited.
//
// What an attempt's report does to its own send (a star: too late to count, it
// goes to the audit trail only):
//
//	reports →   settled     released    rejected    uncertain
//	sent        settled     released    rejected    uncertain
//	uncertain   settled     uncertain*  rejected    uncertain
//	settled     settled     settled*    settled*    settled
//	rejected    rejected*   rejected    rejected    rejected*
//	released    released*   released    released*   released*
//
// A late "not sent" does not release: its task was already listed as uncertain
// and archived, so a release would leave it to nobody. A person retries it.
//
// # Why two automatic sends of one key cannot happen
//
// Claim: between two sends of a key either the attempt of the first one
// reported that it sent nothing, or was refused before work, or a person acted.
//
//  1. Every change of the ledger is one transaction that first updates the
//     ledger's single row. Both databases lock it until the commit, so changes
//     happen one after another and each reads what the one before it wrote.
//  2. A send follows a Latch that returned nil, made for this one HTTP request
//     (R1: an attempt is one call; its id is never used for another). Latch
//     inserts (key, current generation), which is the primary key: in one
//     generation one attempt gets it. It is on the disk before Latch returns
//     (SQLite synchronous=FULL; on PostgreSQL synchronous_commit must be on),
//     so no crash forgets it. Rows are never deleted.
//  3. So two sends of a key have two generations. The generation rises in four
//     places: Conclude(tasks.LatchReleased) of a send that is sent, by its own attempt;
//     Resolve(AsRetry); Reopen; and a replacing Claim of settled content. The
//     last three are a person's. Neither time, nor another worker, nor a crash
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
// A worker frozen anywhere, for however long, changes none of this: before the
// latch it meets the row of whoever came in between; after the latch the row
// is its own and nobody else's attempt raises the generation.
//
// # What the waits are for
//
// The waits are not part of the argument above: they decide how soon a doubt is
// shown to a person and how much a person's retry risks. sent_at is read before
// the latch. The first byte leaves at most 5 s later (Latched.Fresh: the larger
// of wall and monotonic clock) and the call ends by its timeout, so at sent_at +
// timeout + 30 s a worker that runs has reported. A person's retry waits one
// minute; the residual is a worker that froze between Fresh and the first byte,
// or in the body, for longer than that, and clocks of machines that differ by
// more.
//
// # Slots
//
// A slot (source, audio_id) has one owner. Other content is refused unless it
// replaces; from then on the earlier content is refused by Latch, so a task left
// in the queue cannot overwrite what replaced it, and while one content is on
// its way the other waits (*SlotBusyError): which of two would stay is AudD's
// secret. A slot whose only content AudD rejected is free again.
//
// # A restored backup
//
// A ledger restored from a backup has forgotten sends. Therefore each latch
// gives a Mark (ledger id, sequence, attempt id); the sender remembers the mark
// with the largest sequence outside (Redis) before its first byte and gives it
// to the next Latch, which fails with *BehindError unless this ledger has that
// very mark. The sequence alone would not do: a restored ledger that goes on
// soon reaches the number again. A person checks what is missing and calls
// Adopt, which jumps the sequence above the remembered one. No memory (Redis
// lost) is no objection.
//
// # Portability
//
// The SQL is common to SQLite and PostgreSQL: $1 placeholders (SQLite takes them
// too), ON CONFLICT, RETURNING. Instants are milliseconds since the Unix epoch.
package idempotency
