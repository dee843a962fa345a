package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// Halt blocks source+paths after an account failure or by an operator.
type Halt struct {
	Source      string        // empty = every source
	Path        tasks.Path    // empty = every path
	Reason      string        // an outcome's name, or an operator's text; required
	By          string        // who halts; required
	ProbeAfter  time.Duration // when one call may probe the source, up to 7 days; 0 = only Resume reopens it
	Fingerprint string        // of the refused token, for reason authentication; empty = unknown
}

// Halt returns how many source+paths it blocked. Calls in flight finish, but their reports are ignored, because the epoch
// rises.
func (g *Gates) Halt(ctx context.Context, h Halt) (int, error) {
	if h.Reason == "" || h.By == "" {
		return 0, errors.New("halt: Reason and By must be set")
	}
	if h.ProbeAfter < 0 || h.ProbeAfter > 7*24*time.Hour {
		return 0, fmt.Errorf("halt: ProbeAfter %s must be 0 to 168h", h.ProbeAfter)
	}
	return g.changeHalt(ctx, "halt", h)
}

// Resume sets halted source+paths, and those with an open breaker, half-open: the next call is the probe, and its success
// reopens them. Earlier calls cannot halt them again. A throttle is not changed. An empty source or path means all. It
// returns the number of source+paths that it changed.
func (g *Gates) Resume(ctx context.Context, source string, path tasks.Path, by string) (int, error) {
	if by == "" {
		return 0, errors.New("resume: by must be set")
	}
	return g.changeHalt(ctx, "resume", Halt{Source: source, Path: path, By: by})
}

func (g *Gates) changeHalt(ctx context.Context, action string, h Halt) (int, error) {
	if _, err := g.SeedLimits(ctx); err != nil { // the limits name the source+paths
		return 0, err
	}
	request := map[string]any{
		"action": action, "source": h.Source, "path": h.Path, "by": oneLine(h.By),
		"probe_after_ms": h.ProbeAfter.Milliseconds(), "reason": oneLine(h.Reason), "fingerprint": h.Fingerprint,
	}
	var reply struct {
		Changed int `json:"changed"`
	}
	if err := g.run(ctx, haltScript, request, &reply); err != nil {
		return 0, fmt.Errorf("%s: %w", action, err)
	}
	return reply.Changed, nil
}
