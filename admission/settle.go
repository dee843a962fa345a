package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// Settle ends an attempt and waits until Redis has it. Repeating it changes
// nothing. If the error wraps ErrUnavailable or is the end of ctx, the settle is
// repeated in the background while Run runs, for up to ten minutes.
func (g *Gates) Settle(ctx context.Context, p *Permit, r CallReport) error {
	o := g.settling(p, r)
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	a := g.batcher.do(ctx, o)
	if a.err != nil && !errors.Is(a.err, ErrUnavailable) {
		return fmt.Errorf("settle: %w: %w", ErrUnavailable, a.err) // its answer goes to o.abandoned
	}
	if a.err != nil {
		g.repeatLater(o.settle, time.Now())
	}
	return a.err
}

// SettleLater is Settle without waiting: the release of a permit may lag the answer
// to the queue. It may be called while shutting down, before Close.
func (g *Gates) SettleLater(p *Permit, r CallReport) { g.batcher.push(g.settling(p, r)) }

func (g *Gates) settling(p *Permit, r CallReport) *op {
	g.mu.Lock()
	delete(g.permits, p.AttemptID)
	g.mu.Unlock()
	if r.Channel == "" {
		r.Channel = tasks.ChannelNone
	}
	return g.settleOp(&settleRequest{p.attempt(), r}, time.Now())
}

// settleOp is a settle that is repeated if it gets no answer.
func (g *Gates) settleOp(s *settleRequest, since time.Time) *op {
	return &op{settle: s, abandoned: func(a answer) {
		if a.err != nil {
			g.repeatLater(s, since)
		}
	}}
}

const (
	repeatFor     = 10 * time.Minute
	maxUnanswered = 10000 // settles kept; beyond, permits end by their TTL and units stay charged
)

func (g *Gates) repeatLater(s *settleRequest, since time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.unanswered[s.Attempt]; !ok && len(g.unanswered) < maxUnanswered {
		g.unanswered[s.Attempt] = unanswered{settle: s, since: since}
	}
}

// repeatUnanswered sends the settles again that got no answer.
func (g *Gates) repeatUnanswered() {
	g.mu.Lock()
	due := g.unanswered
	g.unanswered = map[string]unanswered{}
	g.mu.Unlock()
	for _, u := range due {
		if time.Since(u.since) <= repeatFor {
			g.batcher.push(g.settleOp(u.settle, u.since))
		}
	}
}
