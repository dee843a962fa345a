package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// CallReport is the end of an attempt: report, refund and release in one.
type CallReport struct {
	Outcome        tasks.Outcome
	Channel        tasks.Channel // empty = none
	Halt           string        // "" none, "path" or "source": what an account answer halts
	Probeable      bool          // a blocked answer that may pass by itself: probed every few minutes
	RetryAfter     time.Duration // Retry-After of a throttle; 0 = AudD named none
	Counted        bool          // counts against max_attempts
	PossiblyBilled bool          // counts against max_possibly_billed
	UnitsUsed      int64         // of the reserved ones; 0 refunds all
	Latency        time.Duration // of the call
	Backoff        time.Duration // the task's own wait that follows
	ClearRecord    bool          // the task is finished: forget its record
}

// Settle ends an attempt and waits until Redis has it. Repeating it changes
// nothing. If the error wraps ErrUnavailable or is the end of ctx, the settle
// is repeated in the background while Run runs, for up to ten minutes.
func (g *Gates) Settle(ctx context.Context, p *Permit, s CallReport) error {
	o := g.settling(p, s)
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	a := g.combiner.do(ctx, o)
	if a.err != nil {
		if !errors.Is(a.err, ErrUnavailable) {
			return fmt.Errorf("settle: %w: %w", ErrUnavailable, a.err) // its answer is looked after by orphan
		}
		g.keepLate(p.AttemptID, o.args)
		return a.err
	}
	if _, ok := a.entry.(int64); !ok {
		return unreadable()
	}
	return nil
}

// SettleLater is Settle without waiting: release and report may lag the answer
// to the queue (R20), results may not. Safe to call while shutting down.
func (g *Gates) SettleLater(p *Permit, s CallReport) { g.combiner.push(g.settling(p, s)) }

func (g *Gates) settling(p *Permit, s CallReport) *op {
	g.mu.Lock()
	delete(g.permits, p.AttemptID)
	g.mu.Unlock()
	channel := s.Channel
	if channel == "" {
		channel = tasks.ChannelNone
	}
	args := []any{
		p.Key, p.AttemptID, p.Source, string(p.Path), p.Group, p.generation, p.Epoch, p.admitted, p.budgets,
		string(s.Outcome), string(channel), s.Halt, flag(s.Probeable), s.RetryAfter.Milliseconds(), flag(s.Counted), flag(s.PossiblyBilled), s.UnitsUsed,
		s.Latency.Milliseconds(), s.Backoff.Milliseconds(), flag(s.ClearRecord),
	}
	return &op{settle: true, path: string(p.Path), args: args, orphan: func(a answer) {
		if a.err != nil {
			g.keepLate(p.AttemptID, args)
		}
	}}
}

// lateOp is a settle to be repeated.
type lateOp struct {
	args []any
	born time.Time
}

const (
	lateFor = 10 * time.Minute
	lateMax = 10000 // settles kept; beyond, permits end by their TTL and units stay charged
)

func (g *Gates) keepLate(attempt string, args []any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.late[attempt]; !ok && len(g.late) < lateMax {
		g.late[attempt] = lateOp{args: args, born: time.Now()}
	}
}

// repeatLate sends settles again whose answer never came. One that fails again
// comes back through orphan with its first age.
func (g *Gates) repeatLate() {
	g.mu.Lock()
	due := g.late
	g.late = map[string]lateOp{}
	g.mu.Unlock()
	for attempt, l := range due {
		if time.Since(l.born) > lateFor {
			continue
		}
		g.combiner.push(&op{settle: true, args: l.args, orphan: func(a answer) {
			if a.err == nil {
				return
			}
			g.mu.Lock()
			g.late[attempt] = l
			g.mu.Unlock()
		}})
	}
}
