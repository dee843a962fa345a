package admission

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"reprise/tasks"
)

// SourceCheck is what the gates of one source would decide about a call now.
type SourceCheck struct {
	Source  string        `json:"source"`
	Gate    Gate          `json:"gate"`    // that would refuse the call; empty = the call would be admitted
	Wait    time.Duration `json:"-"`       // until it may be admitted; 0 without a refusal
	Blocked bool          `json:"blocked"` // the source is blocked until then, not merely busy
	Probe   bool          `json:"probe"`   // the call would be the half-open probe of a blocked source
}

// Check returns, for each source that may serve the path and group, whether a call of so many units (at least 1) would be
// admitted now. It reserves nothing.
func (g *Gates) Check(ctx context.Context, path tasks.Path, group string, units int64) ([]SourceCheck, error) {
	request := struct {
		rules
		Call acquireRequest `json:"call"`
	}{g.rules(time.Now()), acquireRequest{
		Request: Request{Path: path, Group: group, Units: max(1, units), UnitsBounded: true}, RandomA: rand.Int32(), RandomB: rand.Int32(),
	}}
	var reply struct {
		Failure result `json:"failure"`
		Sources []struct {
			SourceCheck
			WaitMillis int64 `json:"wait_ms"`
		} `json:"sources"`
	}
	err := g.withLimits(ctx, func() error {
		reply.Failure = ""
		err := g.run(ctx, checkScript, request, &reply)
		return errors.Join(err, reply.Failure.failure())
	})
	if err != nil {
		return nil, err
	}
	var out []SourceCheck
	for _, c := range reply.Sources {
		c.Wait = millis(c.WaitMillis)
		out = append(out, c.SourceCheck)
	}
	return out, nil
}

// AllBlocked reports whether every source is blocked. gate blocks the source that reopens first, after wait.
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
