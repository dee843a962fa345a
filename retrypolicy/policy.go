package retrypolicy

import (
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// Policy holds the numbers of the table. Build it with Default and change
// fields; it is read-only afterwards and safe for concurrent use.
type Policy struct {
	// MaxAttempts is how many attempts may be counted, the last one included.
	MaxAttempts int
	// MaxPossiblyBilled is how many calls may be billed, the last one included.
	MaxPossiblyBilled int
	// GiveUpAfter bounds the sum of a task's own backoffs and calls.
	GiveUpAfter time.Duration
	// BackoffBase doubles with every counted failure in a row up to BackoffMax.
	BackoffBase, BackoffMax time.Duration
	// MinStreamLimitWait is the least wait after AudD's daily limit, code 611.
	MinStreamLimitWait time.Duration
	// MaxSnooze clamps the wait of a task, MaxBlock that of a source and path.
	MaxSnooze, MaxBlock time.Duration
	// InterruptedWait is the wait after a shutdown or a lost lease.
	InterruptedWait time.Duration
	// NewerPayloadWait is the least wait of a task left for a newer worker.
	NewerPayloadWait time.Duration
	// StoreDownWait is the first wait while a store is down; it doubles up to BackoffMax.
	StoreDownWait time.Duration
	// InputMissingAttempts is how often audio that is not there is looked for.
	InputMissingAttempts int
	// UnreachableWaits are the waits before the counted retries after AudD
	// could not download the URL (code 600).
	UnreachableWaits []time.Duration
	// QuotaFull and QuotaWait: with "wait" a task that met a used-up quota is
	// looked at again after QuotaWait; the gates hold it back until it may go.
	QuotaFull tasks.QuotaFull
	QuotaWait time.Duration
}

// Default returns the policy of the specification: 5 counted attempts, 3 calls
// that may be billed, 24 h, backoff 2 s doubling to 5 min.
func Default() Policy {
	return Policy{
		MaxAttempts:          5,
		MaxPossiblyBilled:    3,
		GiveUpAfter:          24 * time.Hour,
		BackoffBase:          2 * time.Second,
		BackoffMax:           5 * time.Minute,
		MinStreamLimitWait:   time.Hour,
		MaxSnooze:            6 * time.Hour,
		MaxBlock:             24 * time.Hour,
		InterruptedWait:      time.Second,
		NewerPayloadWait:     time.Minute,
		StoreDownWait:        5 * time.Second,
		InputMissingAttempts: 3,
		UnreachableWaits:     []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute},
		QuotaFull:            tasks.QuotaWait,
		QuotaWait:            time.Minute,
	}
}

// Validate reports every field that cannot be right, by name, and fields that
// do not fit each other.
func (p Policy) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	counts := []struct {
		name  string
		value int
	}{
		{"budgets.max_attempts", p.MaxAttempts},
		{"budgets.max_possibly_billed", p.MaxPossiblyBilled},
		{"input_missing_attempts", p.InputMissingAttempts},
	}
	for _, c := range counts {
		if c.value < 1 || c.value > 1000 {
			bad("%s %d: want 1 to 1000", c.name, c.value)
		}
	}
	waits := []struct {
		name  string
		value time.Duration
	}{
		{"budgets.give_up_after", p.GiveUpAfter}, {"backoff_base", p.BackoffBase}, {"backoff_max", p.BackoffMax},
		{"min_stream_limit_wait", p.MinStreamLimitWait}, {"max_snooze", p.MaxSnooze}, {"max_shut", p.MaxBlock},
		{"interrupted_wait", p.InterruptedWait}, {"newer_payload_wait", p.NewerPayloadWait},
		{"store_down_wait", p.StoreDownWait}, {"quota_wait", p.QuotaWait},
	}
	for _, w := range waits {
		if w.value <= 0 || w.value > maxSetting {
			bad("%s %s: want more than 0 and at most %s", w.name, w.value, maxSetting)
		}
	}
	for i, w := range p.UnreachableWaits {
		if w <= 0 || w > p.MaxSnooze {
			bad("unreachable_waits[%d] %s: want more than 0 and at most max_snooze %s", i, w, p.MaxSnooze)
		}
	}
	if p.BackoffBase > p.BackoffMax {
		bad("backoff_base %s is more than backoff_max %s", p.BackoffBase, p.BackoffMax)
	}
	if p.BackoffMax > p.MaxSnooze {
		bad("backoff_max %s is more than max_snooze %s", p.BackoffMax, p.MaxSnooze)
	}
	if p.MaxSnooze > p.MaxBlock {
		bad("max_snooze %s is more than max_shut %s", p.MaxSnooze, p.MaxBlock)
	}
	if p.QuotaFull != tasks.QuotaWait && p.QuotaFull != tasks.QuotaFailFast {
		bad("quota_full: want wait or fail_fast")
	}
	return errors.Join(errs...)
}

// maxSetting bounds every duration of a policy.
const maxSetting = 366 * 24 * time.Hour

// GivenUp reports whether the task's own time is used up, to be asked before a
// call is made; its outcome is then expired.
func (p Policy) GivenUp(r tasks.AttemptRecord) bool { return r.Spent >= p.GiveUpAfter }
