package auddsim

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// limiter holds the limits of one path, or of all. Its clock is the monotonic time since start.
type limiter struct {
	mu       sync.Mutex
	limits   Limits
	start    time.Time
	tat      time.Duration // GCRA: when the bucket would be full again
	inFlight int
}

func newLimiter(l Limits) *limiter { return &limiter{limits: l, start: time.Now()} }

func (l *limiter) set(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// What the bucket lacks is kept in tokens, so that a higher rate fills it at that rate.
	if now := time.Since(l.start); l.tat > now && l.limits.Rate > 0 && limits.Rate > 0 {
		l.tat = now + time.Duration(float64(l.tat-now)*l.limits.Rate/limits.Rate)
	} else {
		l.tat = 0
	}
	l.limits = limits
}

func (l *limiter) get() Limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits
}

// admit takes a place and a token of the bucket, or neither. It returns the limits that were decisive.
func (l *limiter) admit() (Limits, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits.Concurrency > 0 && l.inFlight >= l.limits.Concurrency {
		return l.limits, false
	}
	if !l.takeLocked(time.Since(l.start)) {
		return l.limits, false
	}
	l.inFlight++
	return l.limits, true
}

// takeLocked is a token bucket written as GCRA in whole nanoseconds rounded against the caller, so that in any span t at
// most rate × t + burst requests pass.
func (l *limiter) takeLocked(now time.Duration) bool {
	if l.limits.Rate <= 0 {
		return true
	}
	interval := time.Duration(math.Ceil(float64(time.Second) / l.limits.Rate))
	tolerance := interval * time.Duration(max(l.limits.Burst, 1)-1)
	tat := max(l.tat, now)
	if tat-now > tolerance {
		return false
	}
	l.tat = tat + interval
	return true
}

func (l *limiter) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
}

// draw is the latency of request n.
func (l Limits) draw(seed uint64, n int64) time.Duration {
	if l.Latency <= 0 || l.Jitter == 0 {
		return l.Latency
	}
	return time.Duration(float64(l.Latency) * (1 + l.Jitter*(2*coin(seed, uint64(n))-1)))
}

// gauge counts what is there now and remembers the most there ever was.
type gauge struct{ now, max atomic.Int64 }

func (g *gauge) enter() {
	n := g.now.Add(1)
	for {
		most := g.max.Load()
		if n <= most || g.max.CompareAndSwap(most, n) {
			return
		}
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// reset begins a new maximum at what is there now.
func (g *gauge) reset() { g.max.Store(g.now.Load()) }
