package retrypolicy

import (
	"time"

	"reprise/tasks"
)

// Decision has the consequences of one attempt.
type Decision struct {
	Verdict tasks.Verdict
	// Outcome is the outcome of the attempt. Only AudD's code 600 becomes invalid_request when no retries are
	// left.
	Outcome tasks.Outcome
	// Delay is the wait before the next delivery, 0 if there is none or it may start at once. WholeSeconds rounds
	// it for asynq.
	Delay time.Duration
	// Backoff is the part of Delay that counts towards the give-up time (AttemptRecord.Spent). It is 0 for a wait
	// for a gate, a store, a shutdown or an account.
	Backoff time.Duration
	// Counted and PossiblyBilled are the charges of this attempt. For a crash they keep the charges that were
	// made at admission.
	Counted, PossiblyBilled bool
	// Final marks an archive as a tombstone: enqueuing the key again is refused.
	Final   bool
	Channel tasks.Channel
	// Halt is what this response halts at once.
	Halt tasks.HaltScope
	// TryOther allows a call to another available source in the same delivery. It is false for uploads, and the
	// worker ignores it for pinned tasks.
	TryOther bool
	// BlockFor is for how long AudD asks to block source and path, at most 24 h; 0 if it does not ask.
	BlockFor time.Duration
	// UnitsKept means that the reserved units stay charged; false refunds them.
	UnitsKept bool
	// Latch is the effect on an upload's latch; LatchUntouched for recognitions.
	Latch tasks.LatchEffect
	// Reason begins with the name of the attempt's outcome and names the budget that ran out. It has the form of
	// Classified.Reason.
	Reason string
}
