package idempotency

import "time"

// Fresh returns nil while the first byte may be sent, and a *StaleError once more
// than Config.FirstByte has passed since CommittedAt. Call it last, with
// time.Now(). A stale attempt makes no call and reports tasks.LatchReleased.
//
// The age is the larger of the wall clock's and the monotonic one's: the
// monotonic clock stands still while a machine sleeps, the wall clock may be
// set back. A now before the commit is stale: the clocks cannot be trusted.
func (l Latched) Fresh(now time.Time) error {
	wall := now.Round(0).Sub(l.CommittedAt.Round(0))
	age := max(now.Sub(l.CommittedAt), wall) // Sub is monotonic where both times are
	if age < 0 || age > l.firstByte {
		return &StaleError{Age: age, Limit: l.firstByte}
	}
	return nil
}
