package admission

import (
	"context"
	"fmt"
	"time"
)

func (g *Gates) rules(now time.Time) rules {
	return rules{
		PermitTTL: g.cfg.PermitTTL.Milliseconds(), Lookahead: g.cfg.Lookahead.Microseconds(), SourcePolicy: g.cfg.SourcePolicy,
		Sources: g.cfg.Sources, Days: g.days(now), Months: g.months(now),
	}
}

// exchange sends a batch: its settles first, because they free what the acquires
// need. A lost reply is asked for again once: every operation is idempotent by its
// attempt id.
func (g *Gates) exchange(ops []*op) {
	asked := time.Now()
	request := exchangeRequest{rules: g.rules(asked)}
	for _, o := range ops {
		if o.settle != nil {
			request.Settles = append(request.Settles, o.settle)
		} else {
			request.Acquires = append(request.Acquires, o.acquire)
		}
	}
	reply, err := g.runBounded(request)
	if err != nil && time.Since(asked) < g.cfg.Timeout/2 {
		asked = time.Now()
		reply, err = g.runBounded(request)
	}
	if err == nil && len(reply.Replies) != len(request.Acquires) {
		err = fmt.Errorf("read admission reply: %w: %d replies to %d acquires", ErrUnavailable, len(reply.Replies), len(request.Acquires))
	}
	for _, o := range ops {
		a := answer{asked: asked, err: err}
		if o.acquire != nil && err == nil {
			a.reply, reply.Replies = reply.Replies[0], reply.Replies[1:]
		}
		o.deliver(a)
		if o.settle != nil && err == nil {
			g.waiters.permitFreed(o.settle.Path)
		}
	}
	if err == nil {
		g.sawRevision(reply.Revision)
	}
}

// runBounded is run that returns within Config.Timeout even if the client does not
// check contexts while it reads: one silent connection must not delay the
// operations that come after it.
func (g *Gates) runBounded(request exchangeRequest) (exchangeReply, error) {
	var reply exchangeReply
	done := make(chan error, 1)
	g.batcher.idle.Go(func() { done <- g.run(context.Background(), exchangeScript, request, &reply) })
	timer := time.NewTimer(g.cfg.Timeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return reply, err
	case <-timer.C:
		return exchangeReply{}, fmt.Errorf("run admission script: %w: no answer within %s", ErrUnavailable, g.cfg.Timeout)
	}
}
