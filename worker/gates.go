package worker

import (
	"context"
	"sync"
	"time"

	"reprise/admission"
)

// gates is admission with releases in the background: a report may lag the
// ack, because a permit that is not given back lapses by itself.
type gates struct {
	*admission.Gates
	warn    *warner
	pending sync.WaitGroup
}

// releaseTimeout bounds one report to admission.
const releaseTimeout = 10 * time.Second

// Release reports an attempt and gives its permit back, not awaited.
func (g *gates) Release(ctx context.Context, p *admission.Permit, s admission.Settlement) {
	ctx = context.WithoutCancel(ctx)
	g.pending.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
		defer cancel()
		if err := g.Gates.Settle(ctx, p, s); err != nil {
			g.warn.do("release", "permits are not given back; they lapse by themselves", err)
		}
	})
}

// run renews permits until ctx ends.
func (g *gates) run(ctx context.Context) {
	if err := g.Gates.Run(ctx); err != nil && ctx.Err() == nil {
		g.warn.do("admission", "permits are not renewed", err)
	}
}

// flush waits for the reports under way, each bounded by its own timeout.
func (g *gates) flush() { g.pending.Wait() }
