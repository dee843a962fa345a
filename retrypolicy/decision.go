package retrypolicy

import (
	"time"

	"reprise/tasks"
)

// Decision is everything that follows from one attempt.
type Decision struct {
	Verdict tasks.Verdict
	// Outcome is the attempt's, except that AudD's 600 whose retries are used
	// up ends as invalid_request.
	Outcome tasks.Outcome
	// Delay is the wait before the next delivery, 0 when there is none or when
	// it may come at once. Round it with WholeSeconds for asynq.
	Delay time.Duration
	// Backoff is the part of Delay that counts as the task's own time
	// (Record.Spent): 0 when it waits for a gate, a store, a shutdown or an account.
	Backoff time.Duration
	// Counted and PossiblyBilled are this attempt's charges. For a crash they
	// say that what was pre-charged stays.
	Counted, PossiblyBilled bool
	// Final marks an archive as a tombstone: enqueuing the key again is refused.
	Final   bool
	Channel tasks.Channel
	// Halt is what this one answer halts at once.
	Halt HaltScope
	// HaltAfter > 0 means that this many equal answers in a row on the source
	// and path (admission counts them, over all tasks) halt it.
	HaltAfter int
	// TryOther allows one call to another usable source in this delivery.
	// Never for uploads; the worker also leaves a pinned task where it is.
	TryOther bool
	// BlockFor is how long the upstream asked this source and path to be left
	// alone, unclamped up to Policy.MaxShut; 0 if it did not ask.
	BlockFor time.Duration
	// UnitsKept says that the reserved units stay charged; false refunds them.
	UnitsKept bool
	// Latch is what an upload's ledger does; tasks.LatchUntouched for recognitions.
	Latch tasks.LatchEffect
	// Alert marks outcomes a person should look at.
	Alert bool
	// Reason begins with the name of the attempt's outcome and names the
	// budget that ran out; same form as Classified.Reason.
	Reason string
}
