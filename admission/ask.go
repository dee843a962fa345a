package admission

import (
	"context"
	"time"

	"reprise/tasks"
)

var askScript = script("prelude", "header", "calendar", "budget", "record", "rate", "adapt", "shutter", "choose", "acquire", "ask")

// SourceCheck is what the gates of one source would say to a call right now.
type SourceCheck struct {
	Source  string
	Gate    Gate          // that refuses; empty = the call would go
	Wait    time.Duration // until it may open; 0 when it is open
	Blocked bool          // the source is shut until then, not merely busy
	Probe   bool          // the call would be the probe of a shut source
}

// Check tells, per source that may serve the path and group, whether a call of so
// many units (at least 1) would be let go now. It takes nothing and promises
// nothing.
func (g *Gates) Check(ctx context.Context, path tasks.Path, group string, units int64) ([]SourceCheck, error) {
	args := append(g.header(time.Now()), string(path), group, "", max(1, units))
	reply, err := g.run(ctx, askScript, args)
	if err != nil {
		return nil, err
	}
	f := reader{list: reply}
	if f.int() == 4 {
		if _, err := g.SeedLimits(ctx); err != nil {
			return nil, err
		}
		return g.Check(ctx, path, group, units)
	}
	list := reader{list: asList(f.next())}
	var out []SourceCheck
	for len(list.list) > 0 {
		one := reader{list: asList(list.next())}
		out = append(out, SourceCheck{Source: one.text(), Gate: Gate(one.text()), Wait: one.millis(), Blocked: one.bool(), Probe: one.bool()})
		if one.bad {
			return nil, unreadable()
		}
	}
	if f.bad || list.bad {
		return nil, unreadable()
	}
	return out, nil
}

// AllBlocked reports whether every opening is shut, which gate keeps the one
// that opens first, and when that is.
func AllBlocked(openings []SourceCheck) (gate Gate, wait time.Duration, shut bool) {
	for i, o := range openings {
		if !o.Blocked {
			return "", 0, false
		}
		if i == 0 || o.Wait < wait {
			gate, wait = o.Gate, o.Wait
		}
	}
	return gate, wait, true
}
