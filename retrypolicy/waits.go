package retrypolicy

import (
	"math"
	"time"
)

// The fixed waits of the table. Policy has those that users may set.
const (
	// streamLimitWait is the shortest wait after AudD's daily limit, code 611.
	streamLimitWait = time.Hour
	// maxSnooze bounds the wait of a task, maxBlock that of a source and path.
	maxSnooze = 6 * time.Hour
	maxBlock  = 24 * time.Hour
	// interruptedWait follows a shutdown or a lost lease.
	interruptedWait = time.Second
	// newerPayloadWait is the shortest wait of a task that needs a newer worker.
	newerPayloadWait = time.Minute
	// storeDownWait doubles with every delivery up to Policy.BackoffMax.
	storeDownWait = 5 * time.Second
	// quotaWait is the shortest wait of a task after AudD reported a used-up quota. Then the gates hold it back
	// until there is quota again.
	quotaWait = time.Minute
	// inputMissingAttempts is how many times in a row audio may be missing.
	inputMissingAttempts = 3
)

// unreachableWaits are the waits before the counted retries after AudD could not download the URL (code 600).
var unreachableWaits = [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

// Backoff returns the wait after the n-th counted failure in a row: min(BackoffBase × 2^(n−1), BackoffMax) × a jitter in
// [0.5, 1.5). random is in [0, 1). With the defaults the waits are 2, 4, 8, 16, 32, 64, 128, 256, 300, 300 … s ± 50 %.
func (p Policy) Backoff(n int, random float64) time.Duration {
	return scale(doubled(p.BackoffBase, p.BackoffMax, n), 0.5+unit(random))
}

// pushback returns the wait after the n-th throttled response in a row: a Retry-After with added jitter or,
// without one, the backoff with jitter in [1, 1.5).
func (p Policy) pushback(throttles int, retryAfter time.Duration, random float64) time.Duration {
	if retryAfter > 0 {
		return later(retryAfter, random)
	}
	return scale(doubled(p.BackoffBase, p.BackoffMax, throttles), 1+unit(random)/2)
}

// WholeSeconds rounds a wait up for asynq and adds a second, because asynq rounds due times down to whole
// seconds.
func WholeSeconds(d time.Duration) time.Duration {
	if d <= 0 {
		return time.Second
	}
	if d > math.MaxInt64-2*time.Second {
		return time.Duration(math.MaxInt64).Truncate(time.Second)
	}
	return (d + time.Second - 1).Truncate(time.Second) + time.Second
}

// later adds jitter to a wait that must not become shorter: up to a quarter of it, and between 1 s and 1 min at
// most.
func later(d time.Duration, random float64) time.Duration {
	spread := min(max(d/4, time.Second), time.Minute)
	added := scale(spread, unit(random))
	if d > math.MaxInt64-added {
		return math.MaxInt64
	}
	return d + added
}

// doubled returns min(base × 2^(n−1), limit) without overflow.
func doubled(base, limit time.Duration, n int) time.Duration {
	d := base
	for ; n > 1 && d < limit; n-- {
		if d > limit/2 {
			return limit
		}
		d *= 2
	}
	return min(d, limit)
}

func scale(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}

// unit limits a random number to [0, 1), so that an invalid argument cannot make a wait negative or endless.
func unit(random float64) float64 {
	switch {
	case !(random > 0): // also NaN
		return 0
	case random >= 1:
		return math.Nextafter(1, 0)
	}
	return random
}
