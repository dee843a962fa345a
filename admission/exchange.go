package admission

import (
	"context"
	"fmt"
	"time"
)

// header is what all operations of an exchange share.
func (g *Gates) header(now time.Time) []any {
	local := now.In(g.zone)
	_, offset := local.Zone()
	until, after := now.Add(48*time.Hour), offset
	if _, end := local.ZoneBounds(); !end.IsZero() && end.Before(until) {
		until = end
		_, after = end.Zone()
	}
	args := make([]any, 0, 64)
	args = append(args, g.cfg.Prefix, g.cfg.PermitTTL.Milliseconds(), g.cfg.Lookahead.Microseconds(),
		offset*1000, until.UnixMilli(), after*1000, g.cfg.MonthAnchor, string(g.cfg.SourcePolicy), len(g.cfg.Sources))
	for _, s := range g.cfg.Sources {
		args = append(args, s.Name, s.Fingerprint)
	}
	return args
}

// exchange sends a batch. A lost reply is asked for again once: every
// operation is idempotent by its attempt id.
func (g *Gates) exchange(ops []*op) {
	settles, acquires := 0, 0
	ordered := make([]*op, 0, len(ops))
	for _, o := range ops {
		if o.settle {
			ordered = append(ordered, o)
			settles++
		}
	}
	for _, o := range ops {
		if !o.settle {
			ordered = append(ordered, o)
			acquires++
		}
	}
	asked := time.Now()
	args := append(g.header(asked), settles)
	for _, o := range ordered[:settles] {
		args = append(args, o.args...)
	}
	args = append(args, acquires)
	for _, o := range ordered[settles:] {
		args = append(args, o.args...)
	}
	reply, err := g.runBounded(args)
	if err != nil && time.Since(asked) < g.cfg.Timeout/2 {
		asked = time.Now()
		reply, err = g.runBounded(args)
	}
	if err == nil && len(reply) != len(ordered)+1 {
		err = unreadable()
	}
	for i, o := range ordered {
		a := answer{asked: asked, err: err}
		if err == nil {
			a.entry = reply[i+1]
		}
		o.deliver(a)
		if o.settle && err == nil {
			g.waiters.ended(o.path)
		}
	}
	if err == nil {
		f := reader{list: reply[:1]}
		g.sees(f.int())
	}
}

// runBounded is run that returns within Config.Timeout even if the client does
// not look at contexts while it reads: one silent connection must not hold up
// the operations that come after it.
func (g *Gates) runBounded(args []any) ([]any, error) {
	type result struct {
		reply []any
		err   error
	}
	done := make(chan result, 1)
	g.combiner.idle.Go(func() {
		reply, err := g.run(context.Background(), exchangeScript, args)
		done <- result{reply, err}
	})
	timer := time.NewTimer(g.cfg.Timeout)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.reply, r.err
	case <-timer.C:
		return nil, fmt.Errorf("run admission script: %w: no answer within %s", ErrUnavailable, g.cfg.Timeout)
	}
}
