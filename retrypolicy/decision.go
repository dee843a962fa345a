package retrypolicy

import (
	"time"

	"reprise/tasks"
)

// Decision is what follows from one attempt.
type Decision struct {
	Verdict tasks.Verdict
	// Outcome is that of the attempt, except that AudD's code 600 without retries
	// left becomes invalid_request.
	Outcome tasks.Outcome
	// Delay is the wait before the next delivery, 0 if there is none or it may
	// start at once. Round it with WholeSeconds for asynq.
	Delay time.Duration
	// Backoff is the part of Delay that counts as the task's own time
	// (AttemptRecord.Spent): 0 while it waits for a gate, a store, a shutdown or
	// an account.
	Backoff time.Duration
	// Counted and PossiblyBilled are the charges of this attempt. For a crash
	// they say that the charges made at admission stay.
	Counted, PossiblyBilled bool
	// Final marks an archive as a tombstone: enqueuing the key again is refused.
	Final   bool
	Channel tasks.Channel
	// Halt is what this answer halts at once.
	Halt tasks.HaltScope
	// HaltAfter > 0 halts the source and path after that many equal answers in a
	// row over all tasks; admission counts them.
	HaltAfter int
	// TryOther allows one call to another usable source in the same delivery.
	// It is false for uploads; the worker ignores it for pinned tasks.
	TryOther bool
	// BlockFor is how long the source and path are blocked at AudD's request, at
	// most 24 h; 0 if AudD did not ask.
	BlockFor time.Duration
	// UnitsKept keeps the reserved units charged; false refunds them.
	UnitsKept bool
	// Latch is the effect on an upload's latch; LatchUntouched for recognitions.
	Latch tasks.LatchEffect
	// Alert marks outcomes that an operator should check.
	Alert bool
	// Reason begins with the name of the attempt's outcome and names the budget
	// that ran out. It has the form of Classified.Reason.
	Reason string
}
