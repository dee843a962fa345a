package admission

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/tasks"
)

// A scope is what limits hold for: a source and path ("main:recognize"), a group
// ("group/ugc"), everything together ("global"), and the tuning of AIMD and breaker
// ("tuning"). ScopeOf and ScopeOfGroup make the others.
const (
	ScopeGlobal = "global"
	ScopeTuning = "tuning"
	groupPrefix = "group/"
)

// ScopeOf is the scope of a source+path.
func ScopeOf(source string, path tasks.Path) string { return source + ":" + string(path) }

// ScopeOfGroup is the scope of a group.
func ScopeOfGroup(group string) string { return groupPrefix + group }

// cutSource is the inverse of ScopeOf; ok is false for other scopes.
func cutSource(scope string) (string, tasks.Path, bool) {
	source, path, ok := strings.Cut(scope, ":")
	return source, tasks.Path(path), ok
}

// limitField is one limit: its name in the settings and in Redis, and its value.
type limitField struct {
	name  string
	value int64
}

func (l Limits) fields() []limitField {
	return []limitField{
		{"concurrency", l.Concurrency},
		{"requests_per_minute", l.RequestsPerMinute},
		{"request_burst", l.RequestBurst},
		{"units_per_minute", l.UnitsPerMinute},
		{"unit_burst", l.UnitBurst},
		{"units_per_day", l.UnitsPerDay},
		{"units_per_month", l.UnitsPerMonth},
	}
}

// Limit is one value in force.
type Limit struct {
	Scope string `json:"scope"` // ScopeOf, ScopeOfGroup, ScopeGlobal or ScopeTuning
	Name  string `json:"name"`  // concurrency, requests_per_minute, …; of a group ceiling, weight, …; of the tuning aimd, breaker_failures, …
	Value string `json:"value"` // a whole number, 0 = off; ceiling and slot_share are per mille, times of the tuning are ms, source is a name
}

// Revision says which limits hold, and who set them when.
type Revision struct {
	Number int64
	By     string
	At     time.Time
}

// limits are what the configuration seeds, in a stable order.
func (c Config) limits() []Limit {
	var out []Limit
	put := func(scope, name string, value int64) {
		out = append(out, Limit{Scope: scope, Name: name, Value: strconv.FormatInt(value, 10)})
	}
	for _, s := range c.Sources {
		for _, path := range tasks.Paths {
			for _, f := range c.limitsOf(s.Name, path).fields() {
				put(ScopeOf(s.Name, path), f.name, f.value)
			}
		}
	}
	for _, f := range c.Global.fields() {
		put(ScopeGlobal, f.name, f.value)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Groups)) {
		group, scope := c.Groups[name], ScopeOfGroup(name)
		put(scope, "ceiling", perMille(group.Ceiling))
		put(scope, "units_per_day", group.UnitsPerDay)
		put(scope, "units_per_month", group.UnitsPerMonth)
		put(scope, "weight", max(1, group.Weight))
		put(scope, "slot_share", perMille(group.SlotShare))
		out = append(out, Limit{Scope: scope, Name: "source", Value: group.Source})
	}
	on := int64(1)
	if c.AIMD.Off {
		on = 0
	}
	for _, f := range []limitField{
		{"aimd", on}, {"aimd_start", c.AIMD.Start}, {"aimd_floor", c.AIMD.Floor}, {"aimd_max", c.AIMD.Max},
		{"breaker_failures", c.Breaker.Failures}, {"breaker_window", c.Breaker.Window.Milliseconds()},
		{"breaker_cooldown", c.Breaker.Cooldown.Milliseconds()}, {"breaker_cooldown_max", c.Breaker.CooldownMax.Milliseconds()},
		{"breaker_auth_failures", c.Breaker.AuthFailures}, {"breaker_not_found", c.Breaker.NotFound},
		{"breaker_probe_quota", c.Breaker.ProbeQuota.Milliseconds()}, {"breaker_probe_blocked", c.Breaker.ProbeBlocked.Milliseconds()},
	} {
		put(ScopeTuning, f.name, f.value)
	}
	return out
}

func perMille(share float64) int64 { return int64(math.Round(share * 1000)) }

// scopes are those of the configuration.
func (c Config) scopes() []string {
	var out []string
	for _, s := range c.Sources {
		for _, path := range tasks.Paths {
			out = append(out, ScopeOf(s.Name, path))
		}
	}
	for _, group := range slices.Sorted(maps.Keys(c.Groups)) {
		out = append(out, ScopeOfGroup(group))
	}
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
