package admission

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"reprise/tasks"
)

var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// globalKey is the setting of the limits over all sources and paths.
const globalKey = "limits.global"

// problems collects every wrong field.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// Validate reports every wrong field by the name of its setting, and both names of two
// fields that contradict each other.
func (c Config) Validate() error {
	var p problems
	if open := strings.Index(c.Prefix, "{"); open < 0 || strings.Index(c.Prefix[open:], "}") < 2 || strings.ContainsAny(c.Prefix, " \n") {
		p.add("Prefix %q must contain a Redis {hash tag} and no spaces", c.Prefix)
	}
	names := c.validateSources(&p)
	for _, path := range sortedKeys(c.Paths) {
		c.validatePath(&p, "limits."+string(path), path, c.Paths[path])
	}
	for _, source := range sortedKeys(c.PerSource) {
		if !names[source] {
			p.add("sources.%s.limits: unknown source", source)
		}
		for _, path := range sortedKeys(c.PerSource[source]) {
			c.validatePath(&p, fmt.Sprintf("sources.%s.limits.%s", source, path), path, c.PerSource[source][path])
		}
	}
	c.Global.validate(&p, globalKey)
	for _, group := range sortedKeys(c.Groups) {
		c.Groups[group].validate(&p, group, names)
	}
	c.validateAIMD(&p)
	c.Breaker.validate(&p)
	c.validateTimes(&p)
	if !slices.Contains([]SourcePolicy{HealthAware, RoundRobin, LeastInflight}, c.SourcePolicy) {
		p.add("source_policy %q must be health_aware, round_robin or least_inflight", c.SourcePolicy)
	}
	if c.QuotaFull != tasks.QuotaWait && c.QuotaFull != tasks.QuotaFailFast {
		p.add("quota_full %q must be wait or fail_fast", c.QuotaFull)
	}
	return errors.Join(p...)
}

func (c Config) validateSources(p *problems) map[string]bool {
	names := map[string]bool{}
	if len(c.Sources) == 0 {
		p.add("sources: at least one is required")
	}
	for _, s := range c.Sources {
		if !nameRule.MatchString(s.Name) {
			p.add("sources: the name %q must be 1 to 40 of a-z 0-9 - _", s.Name)
		}
		if names[s.Name] {
			p.add("sources: the name %q is used twice", s.Name)
		}
		if strings.ContainsAny(s.Fingerprint, ", \n") {
			p.add("Fingerprint of source %q: must not contain commas or spaces", s.Name)
		}
		names[s.Name] = true
	}
	return names
}

func (c Config) validatePath(p *problems, field string, path tasks.Path, l Limits) {
	if !slices.Contains(tasks.Paths, path) {
		p.add("%s: unknown path, expected recognize, enterprise or upload", field)
	}
	l.validate(p, field)
	atMost := func(name string, global, own int64) {
		if global > 0 && own > global {
			p.add("%s.%s %d is more than %s.%s %d: the rest could never be used", field, name, own, globalKey, name, global)
		}
	}
	atMost("concurrency", c.Global.Concurrency, l.Concurrency)
	atMost("requests_per_minute", c.Global.RequestsPerMinute, l.RequestsPerMinute)
	atMost("units_per_minute", c.Global.UnitsPerMinute, l.UnitsPerMinute)
	atMost("units_per_day", c.Global.UnitsPerDay, l.UnitsPerDay)
	atMost("units_per_month", c.Global.UnitsPerMonth, l.UnitsPerMonth)
}

func (l Limits) validate(p *problems, field string) {
	for _, f := range l.fields() {
		if f.value < 0 || f.value > 1e9 {
			p.add("%s.%s %d must be 0 (off) to 1,000,000,000", field, f.name, f.value)
		}
	}
	if l.RequestBurst > 0 && l.RequestsPerMinute == 0 {
		p.add("%s.request_burst %d without %s.requests_per_minute: a burst needs its rate", field, l.RequestBurst, field)
	}
	if l.UnitBurst > 0 && l.UnitsPerMinute == 0 {
		p.add("%s.unit_burst %d without %s.units_per_minute: a burst needs its rate", field, l.UnitBurst, field)
	}
	if l.UnitsPerMonth > 0 && l.UnitsPerDay > l.UnitsPerMonth {
		p.add("%s.units_per_day %d is more than %s.units_per_month %d", field, l.UnitsPerDay, field, l.UnitsPerMonth)
	}
}

func (g Group) validate(p *problems, name string, sources map[string]bool) {
	field := "groups." + name
	if !nameRule.MatchString(name) {
		p.add("%s: the name must be 1 to 40 of a-z 0-9 - _", field)
	}
	if !(g.Ceiling >= 0 && g.Ceiling <= 1) {
		p.add("%s.ceiling %g must be 0 (no ceiling) to 1", field, g.Ceiling)
	}
	if !(g.SlotShare >= 0 && g.SlotShare <= 1) {
		p.add("%s.slot_share %g must be 0 (no share) to 1", field, g.SlotShare)
	}
	if g.Weight < 0 || g.Weight > 1000 {
		p.add("%s.weight %d must be 0 (= 1) to 1,000", field, g.Weight)
	}
	if g.Source != "" && !sources[g.Source] {
		p.add("%s.source %q: unknown source", field, g.Source)
	}
	Limits{UnitsPerDay: g.UnitsPerDay, UnitsPerMonth: g.UnitsPerMonth}.validate(p, field)
}

func (c Config) validateAIMD(p *problems) {
	a := c.AIMD
	if a.Floor < 1 {
		p.add("aimd.floor %d must be at least 1", a.Floor)
	}
	if a.Start < a.Floor {
		p.add("aimd.start %d is less than aimd.floor %d", a.Start, a.Floor)
	}
	if a.Max < a.Start || a.Max > 1e6 {
		p.add("aimd.max %d must be aimd.start %d to 1,000,000", a.Max, a.Start)
	}
}

func (b Breaker) validate(p *problems) {
	for _, f := range []struct {
		name  string
		value int64
	}{{"failures", b.Failures}, {"auth_failures", b.AuthFailures}, {"not_found", b.NotFound}} {
		if f.value < 1 {
			p.add("breaker.%s %d must be at least 1", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"window", b.Window}, {"cooldown", b.Cooldown}, {"probe_quota", b.ProbeQuota}, {"probe_blocked", b.ProbeBlocked}} {
		if f.value < time.Millisecond || f.value > 24*time.Hour {
			p.add("breaker.%s %s must be 1ms to 24h", f.name, f.value)
		}
	}
	if b.CooldownMax < b.Cooldown || b.CooldownMax > 24*time.Hour {
		p.add("breaker.cooldown_max %s must be breaker.cooldown %s to 24h", b.CooldownMax, b.Cooldown)
	}
}

func (c Config) validateTimes(p *problems) {
	if _, err := time.LoadLocation(c.TimeZone); err != nil || c.TimeZone == "" || c.TimeZone == "Local" {
		p.add("time_zone %q must be an IANA name such as UTC or Europe/Berlin", c.TimeZone)
	}
	if c.MonthAnchor < 1 || c.MonthAnchor > 28 {
		p.add("month_anchor %d must be 1 to 28", c.MonthAnchor)
	}
	if c.PermitTTL < 4*time.Second || c.PermitTTL > 10*time.Minute {
		p.add("PermitTTL %s must be 4s to 10m", c.PermitTTL)
	}
	if c.RenewEvery < 100*time.Millisecond || c.RenewEvery*2 > c.PermitTTL-trustMargin {
		p.add("RenewEvery %s must be 100ms to half of PermitTTL %s less %s, so that a permit survives one failed renewal", c.RenewEvery, c.PermitTTL, trustMargin)
	}
	if c.Lookahead < 0 || c.Lookahead > time.Second {
		p.add("Lookahead %s must be 0 to 1s", c.Lookahead)
	}
	if c.Timeout < 10*time.Millisecond || c.Timeout > c.PermitTTL-trustMargin {
		p.add("Timeout %s must be 10ms to PermitTTL %s less %s: a permit that is granted later is not trusted", c.Timeout, c.PermitTTL, trustMargin)
	}
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
