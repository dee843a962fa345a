package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// CallReport says how an attempt ended: it is reported to the gates, unused units
// are refunded and the permit is given back, in one step.
type CallReport struct {
	Outcome        tasks.Outcome
	Channel        tasks.Channel // empty = none
	Halt           string        // what an account answer halts: empty = nothing, "path" or "source"
	Probeable      bool          // of a blocked answer: it may pass without an operator, so it is probed every few minutes
	RetryAfter     time.Duration // of a throttle; 0 = AudD named none
	Counted        bool          // counts against max_attempts
	PossiblyBilled bool          // counts against max_possibly_billed
	UnitsUsed      int64         // of the reserved ones; 0 refunds all
	Latency        time.Duration // of the call
	Backoff        time.Duration // the task's own wait that follows
	ClearRecord    bool          // the task is finished: its record is cleared
}

// attempt is what settle and renew say about an attempt that holds a permit.
type attempt struct {
	Key        string     `json:"key"`
	Attempt    string     `json:"attempt"`
	Source     string     `json:"source"`
	Path       tasks.Path `json:"path"`
	Group      string     `json:"group,omitempty"`
	Generation int64      `json:"generation"`
	Epoch      int64      `json:"epoch"`
	AdmittedAt int64      `json:"admitted_at"`
	Budgets    string     `json:"budgets"`
}

func (p *Permit) attempt() attempt {
	return attempt{
		Key: p.Key, Attempt: p.AttemptID, Source: p.Source, Path: p.Path, Group: p.Group, Generation: p.generation, Epoch: p.Epoch,
		AdmittedAt: p.admitted, Budgets: p.budgets,
	}
}

// settleRequest is one settle of lua/exchange.lua.
type settleRequest struct {
	attempt
	Outcome        tasks.Outcome `json:"outcome"`
	Channel        tasks.Channel `json:"channel"`
	Halt           string        `json:"halt,omitempty"`
	Probeable      bool          `json:"probeable"`
	RetryAfter     int64         `json:"retry_after_ms"`
	Counted        bool          `json:"counted"`
	PossiblyBilled bool          `json:"possibly_billed"`
	UnitsUsed      int64         `json:"units_used"`
	Latency        int64         `json:"latency_ms"`
	Backoff        int64         `json:"backoff_ms"`
	ClearRecord    bool          `json:"clear_record"`
}

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
	return g.settleOp(&settleRequest{
		attempt: p.attempt(), Outcome: r.Outcome, Channel: r.Channel, Halt: r.Halt, Probeable: r.Probeable,
		RetryAfter: r.RetryAfter.Milliseconds(), Counted: r.Counted, PossiblyBilled: r.PossiblyBilled, UnitsUsed: r.UnitsUsed,
		Latency: r.Latency.Milliseconds(), Backoff: r.Backoff.Milliseconds(), ClearRecord: r.ClearRecord,
	}, time.Now())
}

// settleOp is a settle that is repeated if it gets no answer.
func (g *Gates) settleOp(s *settleRequest, since time.Time) *op {
	return &op{settle: s, abandoned: func(a answer) {
		if a.err != nil {
			g.repeatLater(s, since)
		}
	}}
}

// unanswered is a settle to be repeated.
type unanswered struct {
	settle *settleRequest
	since  time.Time
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
