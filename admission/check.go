package admission

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"reprise/tasks"
)

// SourceCheck is what the gates of one source would answer to a call now.
type SourceCheck struct {
	Source  string
	Gate    Gate          // that refuses; empty = the call would be admitted
	Wait    time.Duration // until it may be admitted; 0 without a refusal
	Blocked bool          // the source is blocked until then, not merely busy
	Probe   bool          // the call would be the half-open probe of a blocked source
}

// Check reports, for each source that may serve the path and group, whether a call
// of so many units (at least 1) would be admitted now. It takes nothing and promises
// nothing.
func (g *Gates) Check(ctx context.Context, path tasks.Path, group string, units int64) ([]SourceCheck, error) {
	request := struct {
		rules
		Call acquireRequest `json:"call"`
	}{g.rules(time.Now()), acquireRequest{
		Request: Request{Path: path, Group: group, Units: max(1, units), UnitsBounded: true}, RandomA: rand.Int32(), RandomB: rand.Int32(),
	}}
	type checked struct {
		Source  string `json:"source"`
		Gate    Gate   `json:"gate"`
		Wait    int64  `json:"wait_ms"`
		Blocked bool   `json:"blocked"`
		Probe   bool   `json:"probe"`
	}
	ask := func() ([]checked, error) {
		var reply struct {
			Failure result    `json:"failure"`
			Sources []checked `json:"sources"`
		}
		err := g.run(ctx, checkScript, request, &reply)
		return reply.Sources, errors.Join(err, reply.Failure.failure())
	}
	sources, err := ask()
	if errors.Is(err, errLimitsMissing) {
		if _, err = g.SeedLimits(ctx); err == nil {
			sources, err = ask()
		}
	}
	if err != nil {
		return nil, err
	}
	var out []SourceCheck
	for _, c := range sources {
		out = append(out, SourceCheck{Source: c.Source, Gate: c.Gate, Wait: millis(c.Wait), Blocked: c.Blocked, Probe: c.Probe})
	}
	return out, nil
}

// AllBlocked reports whether every source is blocked, which gate blocks the one that
// reopens first, and how long.
func AllBlocked(sources []SourceCheck) (gate Gate, wait time.Duration, blocked bool) {
	for i, s := range sources {
		if !s.Blocked {
			return "", 0, false
		}
		if i == 0 || s.Wait < wait {
			gate, wait = s.Gate, s.Wait
		}
	}
	return gate, wait, true
}
