package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// unanswered is a settle without a reply, to be repeated.
type unanswered struct {
	settle *settleRequest
	since  time.Time
}

const (
	repeatFor     = 10 * time.Minute
	maxUnanswered = 10000 // settles that are kept; the permits of others expire, and their units stay charged
)

// Settle ends an attempt and waits for the reply. Repeating it changes nothing. If the error wraps ErrUnavailable or is the
// end of ctx, Run repeats the settle for up to ten minutes.
func (g *Gates) Settle(ctx context.Context, p *Permit, r CallReport) error {
	o := g.settling(p, r)
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	err := g.batcher.do(ctx, o).err
	if err != nil && !errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("settle: %w: %w", ErrUnavailable, err) // o.abandoned receives the reply
	}
	if err != nil {
		g.repeatLater(o.settle, time.Now())
	}
	return err
}

// SettleLater is Settle without waiting, because a permit may be given back after the task is acknowledged. It may be called
// during shutdown, before Close.
func (g *Gates) SettleLater(p *Permit, r CallReport) { g.batcher.push(g.settling(p, r)) }

func (g *Gates) settling(p *Permit, r CallReport) *op {
	g.mu.Lock()
	delete(g.permits, p.AttemptID)
	g.mu.Unlock()
	if r.Channel == "" {
		r.Channel = tasks.ChannelNone
	}
	return g.settleOp(&settleRequest{p.Admitted, r}, time.Now())
}

// settleOp returns a settle that is repeated if it gets no reply.
func (g *Gates) settleOp(s *settleRequest, since time.Time) *op {
	return &op{settle: s, abandoned: func(reply opReply) {
		if reply.err != nil {
			g.repeatLater(s, since)
		}
	}}
}

func (g *Gates) repeatLater(s *settleRequest, since time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.unanswered[s.AttemptID]; !ok && len(g.unanswered) < maxUnanswered {
		g.unanswered[s.AttemptID] = unanswered{settle: s, since: since}
	}
}

// repeatUnanswered sends the settles without a reply again.
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
