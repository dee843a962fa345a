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

// The scopes of limits, as SetLimits and LimitsInForce name them: a source and
// path ("main:recognize"), everything ("g"), a group ("group/ugc") and the
// tuning of AIMD and breaker ("tuning").
const (
	ScopeGlobal = "global"
	ScopeTuning = "tuning"
)

// ScopeOf is the scope of a source+path.
func ScopeOf(source string, path tasks.Path) string { return source + ":" + string(path) }

// ScopeOfGroup is the scope of a group.
func ScopeOfGroup(group string) string { return "group/" + group }

// limitField is one limit: its name for people and Redis, and its value.
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
	Scope string // ScopeOf, ScopeOfGroup, ScopeGlobal or ScopeTune
	Name  string // concurrency, requests_per_minute, request_burst, units_per_minute, unit_burst, units_per_day, units_per_month, ceiling, …
	Value string // a number; ceiling and slot_share are per mille; source is a name
}

// Revision says which limits hold, and who set them when.
type Revision struct {
	Number int64
	By     string
	At     time.Time
}

// wanted is what the configuration seeds, in a stable order.
func (c Config) wanted() []Limit {
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

// stateNames are the state hashes of the configuration.
func (c Config) stateNames() string {
	var names []string
	for _, s := range c.Sources {
		for _, path := range tasks.Paths {
			names = append(names, "s:"+ScopeOf(s.Name, path))
		}
	}
	for _, group := range sortedKeys(c.Groups) {
		names = append(names, "grp:"+group)
	}
	return strings.Join(names, ",")
}

// SeedLimits writes the limits of the configuration that Redis does not have
// yet. Run does it at start, and every exchange that finds none.
func (g *Gates) SeedLimits(ctx context.Context) (Revision, error) {
	return g.writeLimits(ctx, "seed", "configuration", g.cfg.wanted())
}

// SetLimits changes limits for every worker at once and raises the revision.
// who is kept beside each change. Unknown scopes and names are refused.
func (g *Gates) SetLimits(ctx context.Context, changes []Limit, who string) (Revision, error) {
	if who = strings.TrimSpace(who); who == "" {
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
	return g.writeLimits(ctx, "set", strings.ReplaceAll(who, " ", "_"), changes)
}

func (g *Gates) checkLimit(c Limit) error {
	known := slices.ContainsFunc(g.cfg.wanted(), func(w Limit) bool {
		sameScope := w.Scope == c.Scope || strings.HasPrefix(w.Scope, "group/") && strings.HasPrefix(c.Scope, "group/")
		return sameScope && w.Name == c.Name
	})
	if group, ok := strings.CutPrefix(c.Scope, "group/"); ok && nameRule.MatchString(group) {
		known = known || slices.Contains(groupLimits, c.Name)
	}
	if !known {
		return fmt.Errorf("unknown limit %s/%s", c.Scope, c.Name)
	}
	if c.Name == "source" {
		if c.Value == "" || slices.ContainsFunc(g.cfg.Sources, func(s SourceConfig) bool { return s.Name == c.Value }) {
			return nil
		}
		return fmt.Errorf("limit %s/source: no source %q", c.Scope, c.Value)
	}
	n, err := strconv.ParseInt(c.Value, 10, 64)
	top := int64(1e9)
	if c.Name == "ceiling" || c.Name == "slot_share" {
		top = 1000
	}
	if err != nil || n < 0 || n > top {
		return fmt.Errorf("limit %s/%s %q: want a whole number from 0 to %d", c.Scope, c.Name, c.Value, top)
	}
	return nil
}

// groupLimits are the limits of a group, new ones included.
var groupLimits = []string{"ceiling", "units_per_day", "units_per_month", "weight", "slot_share", "source"}

func (g *Gates) writeLimits(ctx context.Context, mode, who string, limits []Limit) (Revision, error) {
	names := []string{g.cfg.stateNames()}
	for _, l := range limits {
		if group, ok := strings.CutPrefix(l.Scope, "group/"); ok && g.cfg.Groups[group] == (Group{}) {
			names = append(names, "grp:"+group)
		}
	}
	args := []any{g.cfg.Prefix, mode, who, strings.Join(names, ","), g.blindFor()}
	for _, l := range limits {
		args = append(args, l.Scope+"/"+l.Name, l.Value)
	}
	reply, err := g.run(ctx, limitsScript, args)
	if err != nil {
		return Revision{}, err
	}
	f := reader{list: reply}
	rev := Revision{Number: f.int(), By: who, At: time.Now()}
	if f.bad {
		return Revision{}, fmt.Errorf("write limits: %w: %w", ErrUnavailable, errReply)
	}
	g.sees(rev.Number)
	return rev, nil
}

// sees notes the revision of the limits in Redis; 0 = it has none.
func (g *Gates) sees(revision int64) {
	g.revision.Store(revision)
	if revision > 0 {
		g.met.Store(true)
	}
}

// ExpectLimits says that Redis had limits before this process began, because
// calls were made: if it has none now, it has lost everything. Call it before Run.
func (g *Gates) ExpectLimits() { g.met.Store(true) }

// blindFor is how long unit budgets stay missing after Redis lost everything,
// in ms: until every process has renewed the permits of its calls under way,
// of which no call row and no budget knows. A Redis that never had limits, as
// far as this process can know, lost nothing.
func (g *Gates) blindFor() int64 {
	if !g.met.Load() {
		return 0
	}
	return (g.cfg.RenewEvery + g.cfg.Timeout).Milliseconds()
}

// LimitsInForce reads what holds now, sorted by scope and name.
func (g *Gates) LimitsInForce(ctx context.Context) ([]Limit, Revision, error) {
	hashes, _, _, err := g.read(ctx, "", "limits")
	if err != nil {
		return nil, Revision{}, err
	}
	h := hashes[0]
	rev := Revision{Number: h.int("rev"), By: h["by"], At: h.moment("at")}
	var out []Limit
	for _, field := range sortedKeys(h) {
		if cut := strings.LastIndex(field, "/"); cut > 0 {
			out = append(out, Limit{Scope: field[:cut], Name: field[cut+1:], Value: h[field]})
		}
	}
	return out, rev, nil
}

// Drift lists the limits of the configuration that are not in force, because
// somebody changed them since they were seeded. Value is the configured one.
func (g *Gates) Drift(ctx context.Context) ([]Limit, error) {
	inForce, _, err := g.LimitsInForce(ctx)
	if err != nil {
		return nil, err
	}
	var out []Limit
	for _, w := range g.cfg.wanted() {
		if !slices.Contains(inForce, w) {
			out = append(out, w)
		}
	}
	return out, nil
}

// RevisionSeen is the revision the last reply carried; 0 before the first.
func (g *Gates) RevisionSeen() int64 { return g.revision.Load() }
