package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SeedLimits writes the limits of the configuration that Redis does not have. Run does it at start, and so does every
// Acquire that finds none.
func (g *Gates) SeedLimits(ctx context.Context) (Revision, error) {
	return g.writeLimits(ctx, "seed", "configuration", g.cfg.limits())
}

// SetLimits changes limits for every worker at once and raises the revision, which names who changed them. It refuses
// unknown scopes and names.
func (g *Gates) SetLimits(ctx context.Context, changes []Limit, who string) (Revision, error) {
	if who = oneLine(who); who == "" {
		return Revision{}, errors.New("set limits: by must be set")
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
		known = nameRule.MatchString(group) && slices.ContainsFunc(Group{}.limits(""), func(l Limit) bool { return l.Name == c.Name })
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

func (g *Gates) writeLimits(ctx context.Context, action, who string, limits []Limit) (Revision, error) {
	var scopes []string // of source+paths and groups
	for _, l := range slices.Concat(g.cfg.limits(), limits) {
		if l.Scope != ScopeGlobal && l.Scope != ScopeTuning && !slices.Contains(scopes, l.Scope) {
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

// sawRevision stores that Redis has limits. Revision 0 means that it has none.
func (g *Gates) sawRevision(revision int64) {
	if revision > 0 {
		g.hadLimits.Store(true)
	}
}

// ExpectLimits declares that Redis had limits before this process began, because calls were made. If Redis has none now, it
// has lost its data. Call it before Run.
func (g *Gates) ExpectLimits() { g.hadLimits.Store(true) }

// recoveryHold returns how long unit budgets stay missing after Redis lost its data. In this time every process renews the
// permits of its calls in flight, which neither call rows nor budgets include. It is 0 if Redis never had limits, as far as
// this process has seen.
func (g *Gates) recoveryHold() time.Duration {
	if !g.hadLimits.Load() {
		return 0
	}
	return g.cfg.RenewEvery + g.cfg.Timeout
}

// LimitsInForce returns the limits in Redis, sorted by scope and name.
func (g *Gates) LimitsInForce(ctx context.Context) ([]Limit, Revision, error) {
	r, err := g.readState(ctx, "", "limits")
	if err != nil {
		return nil, Revision{}, err
	}
	h := r.Hashes["limits"]
	var out []Limit
	for _, field := range slices.Sorted(maps.Keys(h)) {
		if cut := strings.LastIndex(field, "/"); cut > 0 {
			out = append(out, Limit{Scope: field[:cut], Name: field[cut+1:], Value: h[field]})
		}
	}
	return out, Revision{Number: h.int("revision"), By: h["by"], At: h.moment("at")}, nil
}
