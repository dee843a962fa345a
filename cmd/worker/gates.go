package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/tasks"
	"reprise/worker"
)

// sourceConfig is one AudD account in a settings file.
type sourceConfig struct {
	Token         string    `mapstructure:"token" secret:"true"`
	TokenEnv      string    `mapstructure:"token_env"` // name of the environment variable that holds it
	BaseURL       string    `mapstructure:"base_url"`
	EnterpriseURL string    `mapstructure:"enterprise_url"`
	Limits        ownLimits `mapstructure:"limits"`
}

// ownLimits are those of one source per path. A key that is left out has the
// value it has for every source, 0 = off.
type ownLimits struct {
	Recognize  ownLimit `mapstructure:"recognize"`
	Enterprise ownLimit `mapstructure:"enterprise"`
	Upload     ownLimit `mapstructure:"upload"`
}

// ownLimit has the keys of limitConfig; nil = left out.
type ownLimit struct {
	Concurrency       *int64 `mapstructure:"concurrency"`
	RequestsPerMinute *int64 `mapstructure:"requests_per_minute"`
	RequestBurst      *int64 `mapstructure:"request_burst"`
	UnitsPerMinute    *int64 `mapstructure:"units_per_minute"`
	UnitBurst         *int64 `mapstructure:"unit_burst"`
	UnitsPerDay       *int64 `mapstructure:"units_per_day"`
	UnitsPerMonth     *int64 `mapstructure:"units_per_month"`
}

func (l ownLimit) over(every limitConfig) admission.Limits {
	out := admission.Limits(every)
	for _, f := range []struct {
		to  *int64
		own *int64
	}{
		{&out.Concurrency, l.Concurrency}, {&out.RequestsPerMinute, l.RequestsPerMinute}, {&out.RequestBurst, l.RequestBurst},
		{&out.UnitsPerMinute, l.UnitsPerMinute}, {&out.UnitBurst, l.UnitBurst}, {&out.UnitsPerDay, l.UnitsPerDay},
		{&out.UnitsPerMonth, l.UnitsPerMonth},
	} {
		if f.own != nil {
			*f.to = *f.own
		}
	}
	return out
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
	Ceiling       float64 `mapstructure:"ceiling" share:"true"` // of each rate and permit limit
	UnitsPerDay   int64   `mapstructure:"units_per_day"`
	UnitsPerMonth int64   `mapstructure:"units_per_month"`
	Source        string  `mapstructure:"source" name:"true"`
	Weight        int64   `mapstructure:"weight"`
	SlotShare     float64 `mapstructure:"slot_share" share:"true"` // of a worker's slots
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
	a.TimeZone, a.MonthAnchor, a.QuotaFull = g.TimeZone, g.MonthAnchor, tasks.QuotaFull(g.QuotaFull)
	a.Paths = map[tasks.Path]admission.Limits{
		tasks.Recognize: admission.Limits(g.Limits.Recognize), tasks.Enterprise: admission.Limits(g.Limits.Enterprise),
		tasks.Upload: admission.Limits(g.Limits.Upload),
	}
	a.Global = admission.Limits(g.Limits.Global)
	a.Groups = map[string]admission.Group{}
	for name, group := range g.Groups {
		a.Groups[name] = admission.Group{
			Ceiling: group.Ceiling, UnitsPerDay: group.UnitsPerDay, UnitsPerMonth: group.UnitsPerMonth,
			Source: group.Source, Weight: group.Weight, SlotShare: group.SlotShare,
		}
	}
	a.PerSource = map[string]map[tasks.Path]admission.Limits{}
	for name, s := range g.Sources {
		if s.Limits == (ownLimits{}) {
			continue
		}
		a.PerSource[name] = map[tasks.Path]admission.Limits{
			tasks.Recognize: s.Limits.Recognize.over(g.Limits.Recognize), tasks.Enterprise: s.Limits.Enterprise.over(g.Limits.Enterprise),
			tasks.Upload: s.Limits.Upload.over(g.Limits.Upload),
		}
	}
	o.Policy.QuotaFull = tasks.QuotaFull(g.QuotaFull)
}

// mainSource is the name of the account that AUDD_API_TOKEN or audd.token gives.
const mainSource = "main"

// sources are the accounts: those of the settings, and main when a token stands
// alone.
func (c config) sources(getenv func(string) string) ([]worker.Source, error) {
	var out []worker.Source
	var errs []error
	errs = append(errs, badURL("audd.base_url", c.AudD.BaseURL), badURL("audd.enterprise_url", c.AudD.EnterpriseURL))
	if c.AudD.Token != "" {
		out = append(out, source(mainSource, c.AudD.Token, c.AudD.BaseURL, c.AudD.EnterpriseURL))
	}
	for _, name := range sortedNames(c.Gates.Sources) {
		s := c.Gates.Sources[name]
		key := "sources." + name
		errs = append(errs, badURL(key+".base_url", s.BaseURL), badURL(key+".enterprise_url", s.EnterpriseURL))
		token := s.Token
		if s.TokenEnv != "" {
			if token != "" {
				errs = append(errs, fmt.Errorf("%s: token and token_env are both set: use one", key))
			}
			if token = getenv(s.TokenEnv); token == "" {
				errs = append(errs, fmt.Errorf("%s.token_env: the variable %s is not set", key, s.TokenEnv))
			}
		}
		switch {
		case name == mainSource && c.AudD.Token != "":
			errs = append(errs, errors.New("sources.main: audd.token (or AUDD_API_TOKEN) gives the source main already: use one"))
		case token == "" && s.TokenEnv == "":
			errs = append(errs, fmt.Errorf("%s: no token: set token, token_file or token_env", key))
		}
		out = append(out, source(name, token, first(s.BaseURL, c.AudD.BaseURL), first(s.EnterpriseURL, c.AudD.EnterpriseURL)))
	}
	if len(out) == 0 && errors.Join(errs...) == nil {
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

// badURL names a URL that no call could be made to. It shows no part of it.
func badURL(key, raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s: want an http or https URL", key)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("%s: want a URL without user, password, query and fragment", key)
	}
	return nil
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
