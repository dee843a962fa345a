package retrypolicy

import (
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// Policy has the settings of the table. Build it with Default and change fields. It is safe for concurrent use
// when it no longer changes. waits.go has the fixed waits.
type Policy struct {
	// MaxAttempts is the largest number of counted attempts of a task. Default 5.
	MaxAttempts int
	// MaxPossiblyBilled is the largest number of calls of a task that may be billed. Default 3.
	MaxPossiblyBilled int
	// GiveUpAfter is the give-up time: the largest sum of a task's backoffs and calls. Default 24 h.
	GiveUpAfter time.Duration
	// BackoffBase is the first backoff; it doubles with every counted failure in a row up to BackoffMax.
	// Defaults 2 s and 5 min.
	BackoffBase, BackoffMax time.Duration
	// QuotaFull says whether a task waits or is archived when AudD's quota is used up. Default tasks.QuotaWait.
	QuotaFull tasks.QuotaFull
}

// Default returns the default policy.
func Default() Policy {
	return Policy{
		MaxAttempts:       5,
		MaxPossiblyBilled: 3,
		GiveUpAfter:       24 * time.Hour,
		BackoffBase:       2 * time.Second,
		BackoffMax:        5 * time.Minute,
		QuotaFull:         tasks.QuotaWait,
	}
}

// maxGiveUpAfter bounds Policy.GiveUpAfter.
const maxGiveUpAfter = 366 * 24 * time.Hour

// Validate reports every invalid field by name, and contradictions between fields.
func (p Policy) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(p.MaxAttempts >= 1 && p.MaxAttempts <= 1000, "budgets.max_attempts %d: must be 1 to 1000", p.MaxAttempts)
	check(p.MaxPossiblyBilled >= 1 && p.MaxPossiblyBilled <= 1000, "budgets.max_possibly_billed %d: must be 1 to 1000", p.MaxPossiblyBilled)
	check(p.GiveUpAfter > 0 && p.GiveUpAfter <= maxGiveUpAfter,
		"budgets.give_up_after %s: must be more than 0 and at most %s", p.GiveUpAfter, maxGiveUpAfter)
	check(p.BackoffBase > 0 && p.BackoffBase <= p.BackoffMax,
		"backoff_base %s: must be more than 0 and at most backoff_max %s", p.BackoffBase, p.BackoffMax)
	check(p.BackoffMax <= maxSnooze, "backoff_max %s: must be at most %s", p.BackoffMax, maxSnooze)
	check(p.QuotaFull == tasks.QuotaWait || p.QuotaFull == tasks.QuotaFailFast, "quota_full: must be wait or fail_fast")
	return errors.Join(errs...)
}

// GivenUp reports whether the task's give-up time is used up. Check it before a call; the outcome is then
// tasks.Expired.
func (p Policy) GivenUp(r tasks.AttemptRecord) bool { return r.Spent >= p.GiveUpAfter }
