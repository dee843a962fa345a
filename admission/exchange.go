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

// exchange sends a batch and delivers the replies. The script does the settles first, because they free what the acquires
// need. If the reply is lost, exchange sends the batch once more: every operation is idempotent by its attempt id.
func (g *Gates) exchange(ops []*op) {
	sentAt := time.Now()
	request := exchangeRequest{rules: g.rules(sentAt)}
	for _, o := range ops {
		if o.settle != nil {
			request.Settles = append(request.Settles, o.settle)
		} else {
			request.Acquires = append(request.Acquires, o.acquire)
		}
	}
	reply, err := g.runBounded(request)
	if err != nil && time.Since(sentAt) < g.cfg.Timeout/2 {
		sentAt = time.Now()
		reply, err = g.runBounded(request)
	}
	if err == nil && len(reply.Replies) != len(request.Acquires) {
		err = fmt.Errorf("read admission reply: %w: %d replies to %d acquires", ErrUnavailable, len(reply.Replies), len(request.Acquires))
	}
	for _, o := range ops {
		got := opReply{sentAt: sentAt, err: err}
		if o.acquire != nil && err == nil {
			got.acquired, reply.Replies = reply.Replies[0], reply.Replies[1:]
		}
		o.deliver(got)
		if o.settle != nil && err == nil {
			g.waiters.permitFreed(o.settle.Path)
		}
	}
	if err == nil {
		g.sawRevision(reply.Revision)
	}
}

// runBounded is run, but it returns within Config.Timeout even if the client ignores contexts while it reads. One silent
// connection must not delay the operations of later batches.
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
		return exchangeReply{}, fmt.Errorf("run admission script: %w: no reply within %s", ErrUnavailable, g.cfg.Timeout)
	}
}
