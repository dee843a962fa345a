package tasks

import "time"

// AttemptRecord is what admission stores about a task's generation over all
// its attempts. Charges are made when a call is admitted, so the attempts of a
// crashed worker are included.
type AttemptRecord struct {
	Generation     int64
	Counted        int           // attempts that count against max_attempts
	PossiblyBilled int           // calls that may have been billed
	Streak         int           // counted failures in a row
	SameOutcome    int           // how often LastOutcome occurred in a row
	Throttles      int           // throttled answers in a row
	LastOutcome    Outcome       // empty before the first settled attempt
	Spent          time.Duration // sum of the task's own calls and backoffs
	FirstFailure   time.Time     // zero before the first failure
}
