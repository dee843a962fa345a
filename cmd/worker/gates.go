package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/retrypolicy"
	"reprise/tasks"
	"reprise/worker"
)

// sourceConfig is one AudD account in a settings file.
type sourceConfig struct {
	Token         string      `mapstructure:"token" secret:"true"`
	TokenEnv      string      `mapstructure:"token_env"` // name of the environment variable that holds it
	BaseURL       string      `mapstructure:"base_url"`
	EnterpriseURL string      `mapstructure:"enterprise_url"`
	Limits        *pathLimits `mapstructure:"limits"` // instead of the common ones
}

// pathLimits are limits per path; 0 = off.
type pathLimits struct {
	Recognize  limitConfig `mapstructure:"recognize"`
	Enterprise limitConfig `mapstructure:"enterprise"`
	Upload     limitConfig `mapstructure:"upload"`
}

func (l pathLimits) admission() map[tasks.Path]admission.Limits {
	return map[tasks.Path]admission.Limits{
		tasks.Recognize: admission.Limits(l.Recognize), tasks.Enterprise: admission.Limits(l.Enterprise), tasks.Upload: admission.Limits(l.Upload),
	}
}

type limitConfig struct {
	Concurrency       int64 `mapstructure:"concurrency"`
	RequestsPerMinute int64 `mapstructure:"requests_per_minute"`
	RequestBurst      int64 `mapstructure:"request_burst"`
	UnitsPerMinute    int64 `mapstructure:"units_per_minute"`
	UnitBurst         int64 `mapstructure:"unit_burst"`
	UnitsPerDay       int64 `mapstructure:"units_per_day"`
	UnitsPerMonth     int64 `mapstructure:"units_per_month"`
}

// limitsConfig are the limits of every source, and of all together.
type limitsConfig struct {
	Recognize  limitConfig `mapstructure:"recognize"`
	Enterprise limitConfig `mapstructure:"enterprise"`
	Upload     limitConfig `mapstructure:"upload"`
	Global     limitConfig `mapstructure:"global"`
}

type groupConfig struct {
	Share         float64 `mapstructure:"share"`
	UnitsPerDay   int64   `mapstructure:"units_per_day"`
	UnitsPerMonth int64   `mapstructure:"units_per_month"`
	Source        string  `mapstructure:"source"`
	Weight        int64   `mapstructure:"weight"`
	SlotShare     float64 `mapstructure:"slot_share"`
}

type aimdConfig struct {
	Off   bool  `mapstructure:"off"`
	Start int64 `mapstructure:"start"`
	Floor int64 `mapstructure:"floor"`
	Max   int64 `mapstructure:"max"`
}

type breakerConfig struct {
	Failures     int64         `mapstructure:"failures"`
	Window       time.Duration `mapstructure:"window"`
	Cooldown     time.Duration `mapstructure:"cooldown"`
	CooldownMax  time.Duration `mapstructure:"cooldown_max"`
	AuthFailures int64         `mapstructure:"auth_failures"`
	NotFound     int64         `mapstructure:"not_found"`
	ProbeQuota   time.Duration `mapstructure:"probe_quota"`
	ProbeBlocked time.Duration `mapstructure:"probe_blocked"`
}

// gatesConfig is the part of the settings that admission works by.
type gatesConfig struct {
	Sources      map[string]sourceConfig `mapstructure:"sources"`
	SourcePolicy string                  `mapstructure:"source_policy" name:"true"`
	Limits       limitsConfig            `mapstructure:"limits"`
	Groups       map[string]groupConfig  `mapstructure:"groups"`
	AIMD         aimdConfig              `mapstructure:"aimd"`
	Breaker      breakerConfig           `mapstructure:"breaker"`
	TimeZone     string                  `mapstructure:"time_zone"`
	MonthAnchor  int                     `mapstructure:"month_anchor"`
	QuotaFull    string                  `mapstructure:"quota_full" name:"true"`
}

func defaultGates() gatesConfig {
	d := admission.DefaultConfig()
	return gatesConfig{
		SourcePolicy: string(d.SourcePolicy), AIMD: aimdConfig(d.AIMD), Breaker: breakerConfig(d.Breaker),
		TimeZone: d.TimeZone, MonthAnchor: d.MonthAnchor, QuotaFull: string(d.QuotaFull),
	}
}

// apply lays the settings over the options' admission.
func (g gatesConfig) apply(o *worker.Options) {
	a := &o.Admission
	a.SourcePolicy, a.AIMD, a.Breaker = admission.SourcePolicy(g.SourcePolicy), admission.AIMD(g.AIMD), admission.Breaker(g.Breaker)
	a.TimeZone, a.MonthAnchor, a.QuotaFull = g.TimeZone, g.MonthAnchor, admission.QuotaFull(g.QuotaFull)
	a.Paths = pathLimits{g.Limits.Recognize, g.Limits.Enterprise, g.Limits.Upload}.admission()
	a.Global = admission.Limits(g.Limits.Global)
	a.Groups = map[string]admission.Group{}
	for name, group := range g.Groups {
		a.Groups[name] = admission.Group(group)
	}
	a.PerSource = map[string]map[tasks.Path]admission.Limits{}
	for name, s := range g.Sources {
		if s.Limits != nil {
			a.PerSource[name] = s.Limits.admission()
		}
	}
	o.Policy.QuotaFull = retrypolicy.QuotaFull(g.QuotaFull)
}

// mainSource is the name of the account that AUDD_API_TOKEN or audd.token gives.
const mainSource = "main"

// sources are the accounts: those of the settings, and main when a token stands
// alone.
func (c config) sources(getenv func(string) string) ([]worker.Source, error) {
	var out []worker.Source
	var errs []error
	if c.AudD.Token != "" {
		out = append(out, source(mainSource, c.AudD.Token, c.AudD.BaseURL, c.AudD.EnterpriseURL))
	}
	for _, name := range sortedNames(c.Gates.Sources) {
		s := c.Gates.Sources[name]
		token := s.Token
		if s.TokenEnv != "" {
			if token != "" {
				errs = append(errs, fmt.Errorf("sources.%s: token and token_env are both set: use one", name))
			}
			if token = getenv(s.TokenEnv); token == "" {
				errs = append(errs, fmt.Errorf("sources.%s.token_env: the variable %s is not set", name, s.TokenEnv))
			}
		}
		switch {
		case name == mainSource && c.AudD.Token != "":
			errs = append(errs, errors.New("sources.main: audd.token (or AUDD_API_TOKEN) gives the source main already: use one"))
		case token == "" && s.TokenEnv == "":
			errs = append(errs, fmt.Errorf("sources.%s: no token: set token, token_file or token_env", name))
		}
		out = append(out, source(name, token, first(s.BaseURL, c.AudD.BaseURL), first(s.EnterpriseURL, c.AudD.EnterpriseURL)))
	}
	if len(out) == 0 && len(errs) == 0 {
		errs = append(errs, errNoToken)
	}
	return out, errors.Join(errs...)
}

func source(name, token, base, enterprise string) worker.Source {
	return worker.Source{
		Name: name, Token: func() string { return token },
		BaseURL: withSlash(base), EnterpriseURL: withSlash(enterprise),
	}
}

func withSlash(u string) string {
	if u == "" || strings.HasSuffix(u, "/") {
		return u
	}
	return u + "/"
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func sortedNames(m map[string]sourceConfig) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
