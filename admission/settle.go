package admission

import (
	"time"

	"reprise/tasks"
)

// Channel is what the breaker hears of an attempt.
type Channel = string

// The closed set of channels.
const (
	ChannelSuccess  Channel = "success"  // AudD answered and the account is fine
	ChannelFailure  Channel = "failure"  // AudD did not answer usefully
	ChannelAccount  Channel = "account"  // authentication, quota, subscription, blocked
	ChannelExcluded Channel = "excluded" // says nothing about health
	ChannelNone     Channel = "none"     // no call was made
)

// Settlement is the end of an attempt: report, refund and release in one.
type Settlement struct {
	Outcome        tasks.Outcome
	Channel        string        // success, failure, account, excluded or none
	Halt           string        // "" none, "path" or "source": what an account answer halts
	Probeable      bool          // a blocked answer that may pass by itself: probed every few minutes
	Shut           time.Duration // Retry-After of a throttle; 0 = AudD named none
	Counted        bool          // counts against max_attempts
	PossiblyBilled bool          // counts against max_possibly_billed
	UnitsUsed      int64         // of the reserved ones; 0 refunds all
	Latency        time.Duration // of the call
	Backoff        time.Duration // the task's own wait that follows
	ClearRecord    bool          // the task is finished: forget its record
	RequestID      string        // AudD's, for inspect
}
