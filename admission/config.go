package admission

import (
	"time"

	"reprise/tasks"
)

// SourceConfig is one upstream account.
type SourceConfig struct {
	Name        string `json:"name"`                  // lower-case letters, digits, '-' and '_'; at most 40
	Fingerprint string `json:"fingerprint,omitempty"` // of its token; a new one ends an authentication halt; empty = unknown
}

// Limits are the limits of one source+path, or of everything together. 0 = off.
type Limits struct {
	Concurrency       int64 // calls in flight; with AIMD also its cap
	RequestsPerMinute int64
	RequestBurst      int64 // requests that may start at once; 0 = 1, evenly spaced
	UnitsPerMinute    int64
	UnitBurst         int64 // units that may start at once; 0 = 1; a larger call waits until all of them are free
	UnitsPerDay       int64 // calendar day in TimeZone
	UnitsPerMonth     int64 // budget month, which begins on day MonthAnchor in TimeZone
}

// Group is a customer or a purpose. Its queue is <path>.<name>.
type Group struct {
	Ceiling       float64 // part of each concurrency limit and request rate that it may use; 0 or 1 = all
	UnitsPerDay   int64   // 0 = off
	UnitsPerMonth int64   // 0 = off
	Source        string  // pinned source; empty = any
	Weight        int64   // of its queues compared with others of the path; 0 = 1; the worker uses it
	SlotShare     float64 // part of a worker's slots that it may use; 0 or 1 = all; the worker uses it
}

// AIMD configures how concurrency and request rate are learned from throttles, below the configured limits.
type AIMD struct {
	Off   bool  // true = only the configured limits apply
	Start int64 // first limit of calls in flight; default 8
	Floor int64 // smallest limit of calls in flight; default 1
	Max   int64 // cap where no concurrency is configured; default 1,024
}

// Breaker configures the circuit breaker and the halts of each source+path.
type Breaker struct {
	Failures     int64         // failures in a row that open it; default 5
	Window       time.Duration // a success in this time is evidence of health; default 10 s
	Cooldown     time.Duration // until the first probe; doubles while probes fail; default 5 s
	CooldownMax  time.Duration // default 2 min
	AuthFailures int64         // authentication failures in a row that halt; default 3
	NotFound     int64         // 404s in a row that halt the path; default 5
	ProbeQuota   time.Duration // between probes of quota and subscription; default 1 h
	ProbeBlocked time.Duration // between probes of code 19 and HTML 403; default 5 min
}

// SourcePolicy is how a source is chosen among those that a call may use.
type SourcePolicy string

// The closed set of source policies.
const (
	HealthAware   SourcePolicy = "health_aware"   // of two random sources, the one with more successes and less load
	RoundRobin    SourcePolicy = "round_robin"    // each source in turn
	LeastInflight SourcePolicy = "least_inflight" // the source with the fewest calls in flight
)

// Config configures Gates. The zero value is not valid; start from DefaultConfig. Limits, groups, AIMD and breaker only seed
// Redis. Later SetLimits changes them, so that two versions of a configuration do not overwrite each other.
type Config struct {
	Prefix       string                           // of every Redis key; must contain a {hash tag}
	Sources      []SourceConfig                   // at least one
	Paths        map[tasks.Path]Limits            // per source; a missing path has no limits
	PerSource    map[string]map[tasks.Path]Limits // replaces Paths for one source
	Global       Limits                           // over all sources and paths
	Groups       map[string]Group                 // by name
	AIMD         AIMD
	Breaker      Breaker
	SourcePolicy SourcePolicy    // default health_aware
	TimeZone     string          // IANA name; default UTC
	MonthAnchor  int             // first day of the budget month, 1 … 28; default 1
	QuotaFull    tasks.QuotaFull // default wait
	PermitTTL    time.Duration   // how long a permit lives without renewal; default 12 s
	RenewEvery   time.Duration   // default 3 s
	Lookahead    time.Duration   // how far ahead a rate may promise a start, which Acquire waits for; default 50 ms
	Timeout      time.Duration   // of one operation, including its repeat; default 2 s
}

// DefaultConfig returns a configuration with one source named main and learned limits only.
func DefaultConfig() Config {
	return Config{
		Prefix:  DefaultPrefix,
		Sources: []SourceConfig{{Name: "main"}},
		AIMD:    AIMD{Start: 8, Floor: 1, Max: 1024},
		Breaker: Breaker{
			Failures: 5, Window: 10 * time.Second, Cooldown: 5 * time.Second, CooldownMax: 2 * time.Minute,
			AuthFailures: 3, NotFound: 5, ProbeQuota: time.Hour, ProbeBlocked: 5 * time.Minute,
		},
		SourcePolicy: HealthAware,
		TimeZone:     "UTC",
		MonthAnchor:  1,
		QuotaFull:    tasks.QuotaWait,
		PermitTTL:    12 * time.Second,
		RenewEvery:   3 * time.Second,
		Lookahead:    50 * time.Millisecond,
		Timeout:      2 * time.Second,
	}
}

// limitsOf returns the configured limits of a source+path.
func (c Config) limitsOf(source string, path tasks.Path) Limits {
	if l, ok := c.PerSource[source][path]; ok {
		return l
	}
	return c.Paths[path]
}
