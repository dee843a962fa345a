package admission

import (
	"context"
	"errors"
	"fmt"
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
	for _, name := range sortedKeys(c.Groups) {
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
	for _, group := range sortedKeys(c.Groups) {
		out = append(out, ScopeOfGroup(group))
	}
	return out
}

// SeedLimits writes the limits of the configuration that Redis does not have. Run does
// it at start, and so does every Acquire that finds none.
func (g *Gates) SeedLimits(ctx context.Context) (Revision, error) {
	return g.writeLimits(ctx, "seed", "configuration", g.cfg.limits())
}

// SetLimits changes limits for every worker at once and raises the revision, which
// keeps who changed them. Unknown scopes and names are refused.
func (g *Gates) SetLimits(ctx context.Context, changes []Limit, who string) (Revision, error) {
	if who = oneLine(who); who == "" {
		return Revision{}, errors.New("set limits: who changes them must be named")
	}
	var bad []error
	for _, c := range changes {
		bad = append(bad, g.checkLimit(c))
	}
	if err := errors.Join(bad...); err != nil {
		return Revision{}, fmt.Errorf("set limits: %w", err)
	}
	if _, err := g.SeedLimits(ctx); err != nil {
		return Revision{}, err
	}
	return g.writeLimits(ctx, "set", who, changes)
}

func (g *Gates) checkLimit(c Limit) error {
	known := slices.ContainsFunc(g.cfg.limits(), func(l Limit) bool { return l.Scope == c.Scope && l.Name == c.Name })
	if group, ok := strings.CutPrefix(c.Scope, groupPrefix); ok {
		known = nameRule.MatchString(group) && slices.Contains(groupLimits, c.Name)
	}
	if !known {
		return fmt.Errorf("unknown limit %s/%s", c.Scope, c.Name)
	}
	if c.Name == "source" {
		if c.Value == "" || slices.ContainsFunc(g.cfg.Sources, func(s SourceConfig) bool { return s.Name == c.Value }) {
			return nil
		}
		return fmt.Errorf("limit %s/source: unknown source %q", c.Scope, c.Value)
	}
	n, err := strconv.ParseInt(c.Value, 10, 64)
	most := int64(1e9)
	if c.Name == "ceiling" || c.Name == "slot_share" {
		most = 1000
	}
	if err != nil || n < 0 || n > most {
		return fmt.Errorf("limit %s/%s %q: must be a whole number from 0 to %d", c.Scope, c.Name, c.Value, most)
	}
	return nil
}

// groupLimits are the limits of a group, whether the configuration has it or not.
var groupLimits = []string{"ceiling", "units_per_day", "units_per_month", "weight", "slot_share", "source"}

func (g *Gates) writeLimits(ctx context.Context, action, who string, limits []Limit) (Revision, error) {
	scopes := g.cfg.scopes()
	for _, l := range limits {
		if strings.HasPrefix(l.Scope, groupPrefix) && !slices.Contains(scopes, l.Scope) {
			scopes = append(scopes, l.Scope)
		}
	}
	request := map[string]any{
		"action": action, "by": who, "scopes": scopes, "recovery_hold_ms": g.recoveryHold().Milliseconds(), "limits": append([]Limit{}, limits...),
	}
	var reply struct {
		Revision int64 `json:"revision"`
	}
	if err := g.run(ctx, limitsScript, request, &reply); err != nil {
		return Revision{}, fmt.Errorf("%s limits: %w", action, err)
	}
	g.sawRevision(reply.Revision)
	return Revision{Number: reply.Revision, By: who, At: time.Now()}, nil
}

// sawRevision notes whether Redis has limits: revision 0 means it has none.
func (g *Gates) sawRevision(revision int64) {
	if revision > 0 {
		g.hadLimits.Store(true)
	}
}

// ExpectLimits says that Redis had limits before this process began, because calls
// were made: if it has none now, it has lost its data. Call it before Run.
func (g *Gates) ExpectLimits() { g.hadLimits.Store(true) }

// recoveryHold is how long unit budgets stay missing after Redis lost its data: until
// every process has renewed the permits of its calls in flight, which no call row and
// no budget includes. It is 0 if Redis, as far as this process knows, never had limits.
func (g *Gates) recoveryHold() time.Duration {
	if !g.hadLimits.Load() {
		return 0
	}
	return g.cfg.RenewEvery + g.cfg.Timeout
}

// LimitsInForce reads the limits in Redis, sorted by scope and name.
func (g *Gates) LimitsInForce(ctx context.Context) ([]Limit, Revision, error) {
	r, err := g.readState(ctx, "", "limits")
	if err != nil {
		return nil, Revision{}, err
	}
	h := r.Hashes["limits"]
	var out []Limit
	for _, field := range sortedKeys(h) {
		if cut := strings.LastIndex(field, "/"); cut > 0 {
			out = append(out, Limit{Scope: field[:cut], Name: field[cut+1:], Value: h[field]})
		}
	}
	return out, Revision{Number: h.int("revision"), By: h["by"], At: h.moment("at")}, nil
}

// Drift lists the limits of the configuration that are not in force, because an
// operator changed them since they were seeded. Value is the configured one.
func (g *Gates) Drift(ctx context.Context) ([]Limit, error) {
	inForce, _, err := g.LimitsInForce(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(g.cfg.limits(), func(l Limit) bool { return slices.Contains(inForce, l) }), nil
}
