package worker

import (
	"context"

	"reprise/admission"
)

// gates is admission as the engine uses it.
type gates struct {
	*admission.Gates
	warn *warner
}

// release reports an attempt and gives its permit back, not awaited: it may
// lag the ack, since a permit that is not given back lapses by itself, and
// admission repeats a report that Redis did not take.
func (g *gates) release(p *admission.Permit, s admission.CallReport) { g.Gates.SettleLater(p, s) }

// run renews permits until ctx ends.
func (g *gates) run(ctx context.Context) {
	if err := g.Gates.Run(ctx); err != nil && ctx.Err() == nil {
		g.warn.do("admission", "permits are not renewed", err)
	}
}

// flush waits for the reports under way, each bounded by its own timeout.
func (g *gates) flush() {
	if err := g.Gates.Close(); err != nil {
		g.warn.do("admission", "reports to admission were cut short", err)
	}
}
