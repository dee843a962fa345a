package admission

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"reprise/tasks"
)

var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// globalKey names the settings of the limits over all sources and paths.
const globalKey = "limits.global"

// problems collects every wrong field.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// check adds a problem unless ok. allowed describes the valid values.
func (p *problems) check(ok bool, field string, value any, allowed string) {
	if !ok {
		p.add("%s %v must be %s", field, value, allowed)
	}
}

// inRange reports whether least ≤ value ≤ most; NaN is in no range.
func inRange[T cmp.Ordered](value, least, most T) bool { return value >= least && value <= most }

// Validate reports every wrong field by the name of its setting, and two fields that contradict each other by both names.
func (c Config) Validate() error {
	var p problems
	if open := strings.Index(c.Prefix, "{"); open < 0 || strings.Index(c.Prefix[open:], "}") < 2 || strings.ContainsAny(c.Prefix, " \n") {
		p.add("Prefix %q must contain a Redis {hash tag} and no spaces", c.Prefix)
	}
	names := c.validateSources(&p)
	for _, path := range slices.Sorted(maps.Keys(c.Paths)) {
		c.validatePath(&p, "limits."+string(path), path, c.Paths[path])
	}
	for _, source := range slices.Sorted(maps.Keys(c.PerSource)) {
		if !names[source] {
			p.add("sources.%s.limits: unknown source", source)
		}
		for _, path := range slices.Sorted(maps.Keys(c.PerSource[source])) {
			c.validatePath(&p, fmt.Sprintf("sources.%s.limits.%s", source, path), path, c.PerSource[source][path])
		}
	}
	c.Global.validate(&p, globalKey)
	for _, group := range slices.Sorted(maps.Keys(c.Groups)) {
		c.Groups[group].validate(&p, group, names)
	}
	c.AIMD.validate(&p)
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
			p.add("sources: the name %q must be 1 to 40 characters of a-z, 0-9, - and _", s.Name)
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
		p.add("%s: unknown path; use recognize, enterprise or upload", field)
	}
	l.validate(p, field)
	for i, global := range c.Global.fields() {
		own := l.fields()[i]
		if global.value > 0 && own.value > global.value && !strings.HasSuffix(own.name, "_burst") {
			p.add("%s.%s %d is more than %s.%s %d: the rest could never be used", field, own.name, own.value, globalKey, own.name, global.value)
		}
	}
}

func (l Limits) validate(p *problems, field string) {
	for _, f := range l.fields() {
		p.check(inRange(f.value, 0, 1e9), field+"."+f.name, f.value, "0 (off) to 1,000,000,000")
	}
	if l.RequestBurst > 0 && l.RequestsPerMinute == 0 {
		p.add("%s.request_burst %d without %s.requests_per_minute: set the rate too", field, l.RequestBurst, field)
	}
	if l.UnitBurst > 0 && l.UnitsPerMinute == 0 {
		p.add("%s.unit_burst %d without %s.units_per_minute: set the rate too", field, l.UnitBurst, field)
	}
	if l.UnitsPerMonth > 0 && l.UnitsPerDay > l.UnitsPerMonth {
		p.add("%s.units_per_day %d is more than %s.units_per_month %d", field, l.UnitsPerDay, field, l.UnitsPerMonth)
	}
}

func (g Group) validate(p *problems, name string, sources map[string]bool) {
	field := "groups." + name
	if !nameRule.MatchString(name) {
		p.add("%s: the name must be 1 to 40 characters of a-z, 0-9, - and _", field)
	}
	p.check(inRange(g.Ceiling, 0, 1), field+".ceiling", g.Ceiling, "0 (no ceiling) to 1")
	p.check(inRange(g.SlotShare, 0, 1), field+".slot_share", g.SlotShare, "0 (no share) to 1")
	p.check(inRange(g.Weight, 0, 1000), field+".weight", g.Weight, "0 (= 1) to 1,000")
	if g.Source != "" && !sources[g.Source] {
		p.add("%s.source %q: unknown source", field, g.Source)
	}
	Limits{UnitsPerDay: g.UnitsPerDay, UnitsPerMonth: g.UnitsPerMonth}.validate(p, field)
}

func (a AIMD) validate(p *problems) {
	p.check(inRange(a.Floor, 1, math.MaxInt64), "aimd.floor", a.Floor, "at least 1")
	if a.Start < a.Floor {
		p.add("aimd.start %d is less than aimd.floor %d", a.Start, a.Floor)
	}
	p.check(inRange(a.Max, a.Start, 1e6), "aimd.max", a.Max, fmt.Sprintf("aimd.start %d to 1,000,000", a.Start))
}

func (b Breaker) validate(p *problems) {
	p.check(inRange(b.Failures, 1, math.MaxInt64), "breaker.failures", b.Failures, "at least 1")
	p.check(inRange(b.AuthFailures, 1, math.MaxInt64), "breaker.auth_failures", b.AuthFailures, "at least 1")
	p.check(inRange(b.NotFound, 1, math.MaxInt64), "breaker.not_found", b.NotFound, "at least 1")
	const day = 24 * time.Hour
	p.check(inRange(b.Window, time.Millisecond, day), "breaker.window", b.Window, "1ms to 24h")
	p.check(inRange(b.Cooldown, time.Millisecond, day), "breaker.cooldown", b.Cooldown, "1ms to 24h")
	p.check(inRange(b.ProbeQuota, time.Millisecond, day), "breaker.probe_quota", b.ProbeQuota, "1ms to 24h")
	p.check(inRange(b.ProbeBlocked, time.Millisecond, day), "breaker.probe_blocked", b.ProbeBlocked, "1ms to 24h")
	p.check(inRange(b.CooldownMax, b.Cooldown, day), "breaker.cooldown_max", b.CooldownMax, fmt.Sprintf("breaker.cooldown %s to 24h", b.Cooldown))
}

func (c Config) validateTimes(p *problems) {
	if _, err := time.LoadLocation(c.TimeZone); err != nil || c.TimeZone == "" || c.TimeZone == "Local" {
		p.add("time_zone %q must be an IANA name such as UTC or Europe/Berlin", c.TimeZone)
	}
	p.check(inRange(c.MonthAnchor, 1, 28), "month_anchor", c.MonthAnchor, "1 to 28")
	p.check(inRange(c.PermitTTL, 4*time.Second, 10*time.Minute), "PermitTTL", c.PermitTTL, "4s to 10m")
	p.check(inRange(c.Lookahead, 0, time.Second), "Lookahead", c.Lookahead, "0 to 1s")
	trusted := c.PermitTTL - trustMargin
	p.check(inRange(c.RenewEvery, 100*time.Millisecond, trusted/2), "RenewEvery", c.RenewEvery,
		fmt.Sprintf("100ms to half of PermitTTL %s less %s, so that a permit survives one failed renewal", c.PermitTTL, trustMargin))
	p.check(inRange(c.Timeout, 10*time.Millisecond, trusted), "Timeout", c.Timeout,
		fmt.Sprintf("10ms to PermitTTL %s less %s, because permits granted later are discarded", c.PermitTTL, trustMargin))
}
