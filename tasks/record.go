package tasks

import "time"

// AttemptRecord is what admission remembers of a task's generation over all
// its attempts. A lost attempt is included: its charges are made when it is
// admitted.
type AttemptRecord struct {
	Generation     int64
	Counted        int           // attempts that count against max_attempts
	PossiblyBilled int           // calls that may have been billed
	Streak         int           // counted failures in a row
	SameOutcome    int           // how often LastOutcome came in a row
	Throttles      int           // throttles in a row
	LastOutcome    Outcome       // empty before the first settled attempt
	Spent          time.Duration // sum of the task's own calls and backoffs
	FirstFailure   time.Time     // zero before the first failure
}
