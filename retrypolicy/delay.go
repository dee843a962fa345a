package retrypolicy

import (
	"math"
	"time"
)

// Backoff is the wait after the n-th counted failure in a row:
// min(base × 2^(n−1), max) × jitter in [0.5, 1.5). random is in [0, 1).
// With the defaults the middles are 2, 4, 8, 16, 32, 64, 128, 256, 300 s.
func (p Policy) Backoff(n int, random float64) time.Duration {
	return scale(doubled(p.BackoffBase, p.BackoffMax, n), 0.5+unit(random))
}

// Pushback is the wait after the n-th throttled answer in a row. A Retry-After
// is a floor: jitter is only added, a quarter of it, at least 1 s and at most
// 1 min. Without one it is the backoff with jitter in [1, 1.5).
func (p Policy) Pushback(throttles int, retryAfter time.Duration, random float64) time.Duration {
	if retryAfter > 0 {
		return later(retryAfter, random)
	}
	return scale(doubled(p.BackoffBase, p.BackoffMax, throttles), 1+unit(random)/2)
}

// WholeSeconds is a wait as asynq needs it: it stores whole seconds rounded
// down, so a task could come up to a second early. Rounded up plus one second
// it never does.
func WholeSeconds(d time.Duration) time.Duration {
	if d <= 0 {
		return time.Second
	}
	if d > math.MaxInt64-2*time.Second {
		return time.Duration(math.MaxInt64).Truncate(time.Second)
	}
	return (d + time.Second - 1).Truncate(time.Second) + time.Second
}

// later adds jitter to a wait that must not be shortened.
func later(d time.Duration, random float64) time.Duration {
	spread := min(max(d/4, time.Second), time.Minute)
	added := scale(spread, unit(random))
	if d > math.MaxInt64-added {
		return math.MaxInt64
	}
	return d + added
}

// doubled is min(base × 2^(n−1), limit) without overflow.
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

// unit forces a random number into [0, 1), so that a caller's mistake cannot
// become a negative or endless wait.
func unit(random float64) float64 {
	switch {
	case !(random > 0): // also NaN
		return 0
	case random >= 1:
		return math.Nextafter(1, 0)
	}
	return random
}
