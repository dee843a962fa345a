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

// A scope is what limits apply to: a source and path ("main:recognize", ScopeOf), a group ("group/ugc", ScopeOfGroup),
// everything together ("global"), and the settings of AIMD and breaker ("tuning").
const (
	ScopeGlobal = "global"
	ScopeTuning = "tuning"
	groupPrefix = "group/"
)

// ScopeOf returns the scope of a source+path.
func ScopeOf(source string, path tasks.Path) string { return source + ":" + string(path) }

// ScopeOfGroup returns the scope of a group.
func ScopeOfGroup(group string) string { return groupPrefix + group }

// cutSource returns the source and path of a scope; ok is false for other scopes.
func cutSource(scope string) (source string, path tasks.Path, ok bool) {
	source, name, ok := strings.Cut(scope, ":")
	return source, tasks.Path(name), ok
}

// Limit is one value in force.
type Limit struct {
	Scope string `json:"scope"` // ScopeOf, ScopeOfGroup, ScopeGlobal or ScopeTuning
	Name  string `json:"name"`  // concurrency …; of a group ceiling, weight …; of the tuning aimd, breaker_failures …
	Value string `json:"value"` // a whole number, 0 = off; ceiling and slot_share are per mille, times are ms, source is a name
}

// Revision identifies the limits in force.
type Revision struct {
	Number int64
	By     string // who set them
	At     time.Time
}

// limitField is one number of a scope, by its name in the settings and in Redis.
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

func (g Group) limits(scope string) []Limit {
	return append(limitsOf(scope, []limitField{
		{"ceiling", perMille(g.Ceiling)},
		{"units_per_day", g.UnitsPerDay},
		{"units_per_month", g.UnitsPerMonth},
		{"weight", max(1, g.Weight)},
		{"slot_share", perMille(g.SlotShare)},
	}), Limit{scope, "source", g.Source})
}

func (c Config) tuning() []limitField {
	on := int64(1)
	if c.AIMD.Off {
		on = 0
	}
	return []limitField{
		{"aimd", on}, {"aimd_start", c.AIMD.Start}, {"aimd_floor", c.AIMD.Floor}, {"aimd_max", c.AIMD.Max},
		{"breaker_failures", c.Breaker.Failures}, {"breaker_window", c.Breaker.Window.Milliseconds()},
		{"breaker_cooldown", c.Breaker.Cooldown.Milliseconds()}, {"breaker_cooldown_max", c.Breaker.CooldownMax.Milliseconds()},
		{"breaker_auth_failures", c.Breaker.AuthFailures}, {"breaker_not_found", c.Breaker.NotFound},
		{"breaker_probe_quota", c.Breaker.ProbeQuota.Milliseconds()}, {"breaker_probe_blocked", c.Breaker.ProbeBlocked.Milliseconds()},
	}
}

// limits returns what the configuration seeds, in a stable order.
func (c Config) limits() []Limit {
	var out []Limit
	for _, s := range c.Sources {
		for _, path := range tasks.Paths {
			out = append(out, limitsOf(ScopeOf(s.Name, path), c.limitsOf(s.Name, path).fields())...)
		}
	}
	out = append(out, limitsOf(ScopeGlobal, c.Global.fields())...)
	for _, name := range slices.Sorted(maps.Keys(c.Groups)) {
		out = append(out, c.Groups[name].limits(ScopeOfGroup(name))...)
	}
	return append(out, limitsOf(ScopeTuning, c.tuning())...)
}

func limitsOf(scope string, fields []limitField) []Limit {
	var out []Limit
	for _, f := range fields {
		out = append(out, Limit{scope, f.name, strconv.FormatInt(f.value, 10)})
	}
	return out
}

func perMille(share float64) int64 { return int64(math.Round(share * 1000)) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
