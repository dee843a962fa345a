package auddsim

import (
	"cmp"
	"fmt"
	"time"
)

// Config are the settings of a Simulator. With the zero value any token is valid, half of all contents match, and there is
// no latency, limit or quota.
type Config struct {
	// Tokens are the valid tokens. Empty: all that were not revoked.
	Tokens []string
	// Quota is how many units a token may be charged before it gets code 902. 0: no limit.
	Quota int64
	// MatchShare is the share of contents that match. 0: one half; negative: none.
	MatchShare float64
	// BytesPerSecond estimates the length of audio without a WAV header. 0: 16,000.
	BytesPerSecond int64
	// URLDuration is the assumed length of audio given by URL, because nothing is downloaded. 0: 3 minutes.
	URLDuration time.Duration
	// IndexDelay is the time after an upload before recognize finds it.
	IndexDelay time.Duration
	// Limits apply to all metered paths together. SetLimits gives a path limits of its own.
	Limits Limits
	// Seed feeds the latency and Rule.Probability. The same seed and order of requests give the same responses.
	Seed uint64
	// Rules are tried in this order.
	Rules []Rule
	// LogSize is the number of finished requests kept. 0: 200,000.
	LogSize int
	// LogHeaders are the names of request headers to keep in the log.
	LogHeaders []string
	// EnterpriseAddr makes Listen open a second listener with enterprise at its root, as AudD has it. Empty: none.
	EnterpriseAddr string
}

// Validate reports every field out of range and every invalid rule.
func (c Config) Validate() error {
	var all checks
	all.require(c.Quota >= 0, "quota must not be negative")
	all.require(c.MatchShare <= 1, "match_share must be at most 1")
	all.require(c.BytesPerSecond >= 0, "bytes_per_second must not be negative")
	all.require(c.URLDuration >= 0, "url duration must not be negative")
	all.require(c.IndexDelay >= 0, "index delay must not be negative")
	all.require(c.LogSize >= 0, "log_size must not be negative")
	if err := c.Limits.Validate(); err != nil {
		all = append(all, fmt.Errorf("limits: %w", err))
	}
	all = append(all, validateRules(c.Rules))
	return all.err()
}

func (c Config) withDefaults() Config {
	c.MatchShare = cmp.Or(c.MatchShare, 0.5)
	c.BytesPerSecond = cmp.Or(c.BytesPerSecond, 16_000)
	c.URLDuration = cmp.Or(c.URLDuration, 3*time.Minute)
	c.LogSize = cmp.Or(c.LogSize, 200_000)
	return c
}
