package auddsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The paths the simulator knows. They are the words used in rules, bills and logs.
const (
	PathRecognize  = "recognize"  // POST / (one unit a call)
	PathEnterprise = "enterprise" // POST /enterprise/ (one unit per 12 s scanned)
	PathUpload     = "upload"     // POST /upload/ (one unit a call)
	PathStreams    = "streams"    // POST /getStreams/ (unmetered)
	PathOther      = "other"      // anything else: code 1000
)

// Config says how a Simulator behaves. The zero value is usable: any token is good, half of all contents match, there
// is no latency, no limit and no quota.
type Config struct {
	// Tokens is the allow-list. Empty: every token that was not revoked is good.
	Tokens []string
	// Quota is the number of units a token may be charged before it is answered 902. 0: none.
	Quota int64
	// Deny lists, per path, the tokens that are answered 904 there; "*" stands for every token.
	Deny map[string][]string
	// MatchShare is the share of contents that match. 0: one half; negative: none.
	MatchShare float64
	// BytesPerSecond estimates the length of audio without a WAV header. 0: 16,000.
	BytesPerSecond int64
	// URLDuration is the length assumed of audio given by URL (nothing is downloaded). 0: 3 minutes.
	URLDuration time.Duration
	// IndexDelay is the time after an upload before recognize finds it. 0: at once.
	IndexDelay time.Duration
	// MaxRecognizeBytes is the largest file recognize takes; larger ones are answered 400. 0: 10 MiB; negative: no bound.
	MaxRecognizeBytes int64
	// LimitCountsMatches makes enterprise's limit bound the songs returned instead of the chunks scanned (and billed).
	LimitCountsMatches bool
	// ListEmptyChunks makes enterprise list scanned chunks without songs.
	ListEmptyChunks bool
	// Limits holds for all metered paths together, except those with limits of their own in PathLimits.
	Limits Limits
	// PathLimits gives a path a rate, a concurrency and a latency of its own.
	PathLimits map[string]Limits
	// Seed feeds latency and the coin of Rule.Probability. The same seed and order of requests give the same answers.
	Seed uint64
	// Rules are tried in this order; see Rule.
	Rules []Rule
	// LogSize is the number of finished requests kept. 0: 200,000.
	LogSize int
	// LogHeaders names request headers to keep in the log.
	LogHeaders []string
	// EnterpriseAddr makes Listen open a second listener with enterprise at its root, as AudD has it. Empty: none.
	EnterpriseAddr string
}

// Limits are what a path allows and how long it takes. The zero value: no limit, no latency.
type Limits struct {
	Rate        float64 // requests a second, 0 = no limit
	Burst       int     // size of the token bucket; 0 = 1
	Concurrency int     // requests in flight, 0 = no limit
	// Latency is the time between the whole request and its answer, drawn evenly from Latency × (1 ± Jitter).
	Latency time.Duration
	Jitter  float64 // 0 … 1
	// RetryAfter is sent with refusals, in whole seconds rounded up. 0: no header.
	RetryAfter time.Duration
	// Code answers refusals with this AudD code (611) in a body with HTTP 200; 0: HTTP 429 as plain text.
	Code int
	// Status is the HTTP status of refusals. 0: 429 without Code, 200 with it.
	Status int
}

// limitsJSON is how Limits are written: durations as text, every field optional so that it also serves as a change.
type limitsJSON struct {
	Path        string   `json:"path,omitempty"`
	Rate        *float64 `json:"rate,omitempty"`
	Burst       *int     `json:"burst,omitempty"`
	Concurrency *int     `json:"concurrency,omitempty"`
	Latency     *string  `json:"latency,omitempty"`
	Jitter      *float64 `json:"jitter,omitempty"`
	RetryAfter  *string  `json:"retry_after,omitempty"`
	Code        *int     `json:"code,omitempty"`
	Status      *int     `json:"status,omitempty"`
}

// MarshalJSON writes durations as text ("200ms").
func (l Limits) MarshalJSON() ([]byte, error) {
	latency, after := l.Latency.String(), l.RetryAfter.String()
	return json.Marshal(limitsJSON{Rate: &l.Rate, Burst: &l.Burst, Concurrency: &l.Concurrency, Latency: &latency,
		Jitter: &l.Jitter, RetryAfter: &after, Code: &l.Code, Status: &l.Status})
}

// UnmarshalJSON changes only the fields that are present and refuses unknown ones.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var in limitsJSON
	if err := decodeStrict(data, &in); err != nil {
		return fmt.Errorf("read limits: %w", err)
	}
	return in.apply(l)
}

func (in limitsJSON) apply(l *Limits) error {
	set(&l.Rate, in.Rate)
	set(&l.Burst, in.Burst)
	set(&l.Concurrency, in.Concurrency)
	set(&l.Jitter, in.Jitter)
	set(&l.Code, in.Code)
	set(&l.Status, in.Status)
	return errors.Join(setDuration(&l.Latency, in.Latency, "latency"), setDuration(&l.RetryAfter, in.RetryAfter, "retry_after"))
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func setDuration(to *time.Duration, from *string, name string) error {
	if from == nil || *from == "" {
		return nil
	}
	d, err := time.ParseDuration(*from)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*to = d
	return nil
}

// Validate reports every field out of range.
func (l Limits) Validate() error {
	var errs []error
	check := func(ok bool, text string) {
		if !ok {
			errs = append(errs, errors.New(text))
		}
	}
	check(l.Rate >= 0 && l.Rate <= 1e9, "rate must be between 0 and 1e9 a second")
	check(l.Burst >= 0, "burst must not be negative")
	check(l.Concurrency >= 0, "concurrency must not be negative")
	check(l.Latency >= 0, "latency must not be negative")
	check(l.Jitter >= 0 && l.Jitter <= 1, "jitter must be between 0 and 1")
	check(l.RetryAfter >= 0, "retry_after must not be negative")
	check(l.Status == 0 || l.Status >= 200 && l.Status <= 599, "status must be between 200 and 599")
	return errors.Join(errs...)
}

// Validate reports every field out of range and every wrong rule.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, text string) {
		if !ok {
			errs = append(errs, errors.New(text))
		}
	}
	check(c.Quota >= 0, "quota must not be negative")
	check(c.MatchShare <= 1, "match_share must be at most 1")
	check(c.BytesPerSecond >= 0, "bytes_per_second must not be negative")
	check(c.URLDuration >= 0, "url duration must not be negative")
	check(c.IndexDelay >= 0, "index delay must not be negative")
	check(c.LogSize >= 0, "log_size must not be negative")
	if err := c.Limits.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("limits: %w", err))
	}
	for path, l := range c.PathLimits {
		check(metered(path), fmt.Sprintf("path_limits: %q is not a metered path", path))
		if err := l.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("limits of %s: %w", path, err))
		}
	}
	for i, r := range c.Rules {
		if err := r.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("rule %d (%s): %w", i+1, r.ID, err))
		}
	}
	return errors.Join(errs...)
}

func metered(path string) bool {
	return path == PathRecognize || path == PathEnterprise || path == PathUpload
}

// withDefaults fills in what a zero field stands for, as each field documents.
func (c Config) withDefaults() Config {
	if c.MatchShare == 0 {
		c.MatchShare = 0.5
	}
	if c.BytesPerSecond == 0 {
		c.BytesPerSecond = 16_000
	}
	if c.URLDuration == 0 {
		c.URLDuration = 3 * time.Minute
	}
	if c.MaxRecognizeBytes == 0 {
		c.MaxRecognizeBytes = 10 << 20
	}
	if c.LogSize == 0 {
		c.LogSize = 200_000
	}
	return c
}
