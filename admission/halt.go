package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"reprise/tasks"
)

// Halt shuts a source+path for an account reason or by a person.
type Halt struct {
	Source      string        // empty = every source
	Path        tasks.Path    // empty = every path
	Reason      string        // an outcome's name, or a person's word; required
	By          string        // who; required
	ProbeAfter  time.Duration // when one call may probe it, up to 7 days; 0 = only Resume opens it
	Fingerprint string        // of the refused token, for reason authentication; empty = unknown
}

// Halt shuts and returns how many source+paths it shut. Calls under way finish;
// what they report is ignored, because the epoch rises.
func (g *Gates) Halt(ctx context.Context, h Halt) (int, error) {
	if h.Reason == "" || h.By == "" {
		return 0, errors.New("halt: Reason and By must be set")
	}
	if h.ProbeAfter < 0 || h.ProbeAfter > 7*24*time.Hour {
		return 0, fmt.Errorf("halt: ProbeAfter %s: want 0 to 168h", h.ProbeAfter)
	}
	return g.gate(ctx, h, "shut")
}

// Resume sets halted and broken source+paths half-open: the next call is the
// probe, and its success opens them. Calls of before cannot halt them again.
// A running throttle goes on. Empty source or path means all.
func (g *Gates) Resume(ctx context.Context, source string, path tasks.Path, by string) (int, error) {
	if by == "" {
		return 0, errors.New("resume: by must be set")
	}
	return g.gate(ctx, Halt{Source: source, Path: path, By: by}, "open")
}

func (g *Gates) gate(ctx context.Context, h Halt, what string) (int, error) {
	if _, err := g.SeedLimits(ctx); err != nil { // it knows which source+paths there are
		return 0, err
	}
	word := func(s string) string { return strings.Join(strings.Fields(s), "_") }
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	n, err := gateScript.Run(ctx, g.rdb, []string{g.cfg.Prefix + "g"}, g.cfg.Prefix, orAll(h.Source), orAll(string(h.Path)), what,
		h.ProbeAfter.Milliseconds(), word(h.Reason), word(h.By), h.Fingerprint).Int()
	if err != nil {
		return 0, fmt.Errorf("%s gate: %w: %w", what, ErrUnavailable, err)
	}
	return n, nil
}

func orAll(s string) string {
	if s == "" {
		return "*"
	}
	return s
}
