package auddsim

import (
	"math"
	"sync"
	"time"
)

// Limits are what a path admits and how long it takes. The zero value: no limit, no latency.
type Limits struct {
	Rate        float64 `json:"rate"`        // requests per second; 0 = no limit
	Burst       int     `json:"burst"`       // size of the token bucket; 0 = 1
	Concurrency int     `json:"concurrency"` // requests in flight; 0 = no limit
	// Latency is the time between the complete request and its response, drawn evenly from Latency × (1 ± Jitter).
	Latency time.Duration `json:"-"`
	Jitter  float64       `json:"jitter"` // 0 … 1
	// RetryAfter is sent with refusals, in whole seconds rounded up. 0: no header.
	RetryAfter time.Duration `json:"-"`
	// Code is the AudD code of refusals, such as 611, in a body with HTTP 200. 0: HTTP 429 with plain text.
	Code int `json:"code"`
	// Status is the HTTP status of refusals. 0: 429 without Code, 200 with it.
	Status int `json:"status"`
}

type plainLimits Limits

// limitsJSON reads and writes Limits as JSON, with their path and the durations as text ("200ms").
type limitsJSON struct {
	Path string `json:"path,omitempty"`
	*plainLimits
	Latency    *jsonDuration `json:"latency"`
	RetryAfter *jsonDuration `json:"retry_after"`
}

func (l *Limits) json(path string) *limitsJSON {
	return &limitsJSON{path, (*plainLimits)(l), (*jsonDuration)(&l.Latency), (*jsonDuration)(&l.RetryAfter)}
}

// Validate reports every field out of range.
func (l Limits) Validate() error {
	var all checks
	all.require(l.Rate >= 0 && l.Rate <= 1e9, "rate must be between 0 and 1e9 per second")
	all.require(l.Burst >= 0, "burst must not be negative")
	all.require(l.Concurrency >= 0, "concurrency must not be negative")
	all.require(l.Latency >= 0, "latency must not be negative")
	all.require(l.Jitter >= 0 && l.Jitter <= 1, "jitter must be between 0 and 1")
	all.require(l.RetryAfter >= 0, "retry_after must not be negative")
	all.require(l.Status == 0 || l.Status >= 200 && l.Status <= 599, "status must be between 200 and 599")
	return all.err()
}

func (l Limits) draw(seed uint64, n int64) time.Duration {
	if l.Latency <= 0 || l.Jitter == 0 {
		return l.Latency
	}
	return time.Duration(float64(l.Latency) * (1 + l.Jitter*(2*coin(seed, uint64(n))-1)))
}

// limiter applies the limits of one path, or of all paths together.
type limiter struct {
	mu       sync.Mutex
	limits   Limits
	start    time.Time     // zero of the limiter's clock
	fullAt   time.Duration // when the token bucket is full again (GCRA), on that clock
	inFlight int
}

func newLimiter(l Limits) *limiter { return &limiter{limits: l, start: time.Now()} }

func (l *limiter) set(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The number of missing tokens stays the same, so that the new rate fills the bucket.
	if now := time.Since(l.start); l.fullAt > now && l.limits.Rate > 0 && limits.Rate > 0 {
		l.fullAt = now + time.Duration(float64(l.fullAt-now)*l.limits.Rate/limits.Rate)
	} else {
		l.fullAt = 0
	}
	l.limits = limits
}

func (l *limiter) get() Limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits
}

// admit takes a place among the requests in flight and a token of the bucket, or neither. It returns the limits it used.
func (l *limiter) admit() (Limits, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ok := l.limits.Concurrency == 0 || l.inFlight < l.limits.Concurrency
	if ok = ok && l.takeLocked(time.Since(l.start)); ok {
		l.inFlight++
	}
	return l.limits, ok
}

// takeLocked is a token bucket (GCRA) in whole nanoseconds, rounded so that at most rate × t + burst requests pass in
// any time t.
func (l *limiter) takeLocked(now time.Duration) bool {
	if l.limits.Rate <= 0 {
		return true
	}
	interval := time.Duration(math.Ceil(float64(time.Second) / l.limits.Rate))
	tolerance := interval * time.Duration(max(l.limits.Burst, 1)-1)
	fullAt := max(l.fullAt, now)
	if fullAt-now > tolerance {
		return false
	}
	l.fullAt = fullAt + interval
	return true
}

func (l *limiter) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
}
