package admission

import (
	"context"
	"fmt"
	"time"
)

// recountEvery is how often one worker of the fleet recounts the permits.
const recountEvery = 30 * time.Second

// renewRequest is one permit of lua/renew.lua.
type renewRequest struct {
	Admitted
	Sent bool `json:"sent"`
}

// Renew confirms all permits of this process in one call. Run does it every Config.RenewEvery. A permit that is gone is
// lost. Its call is registered again if it may be on its way (Valid returned nil).
func (g *Gates) Renew(ctx context.Context) error { return g.renew(ctx, false) }

// renew calls Redis even without a permit if always is set. The script then recounts the permits and repairs the effects
// of a clock step, which must also happen while no call is admitted.
func (g *Gates) renew(ctx context.Context, always bool) error {
	permits := []renewRequest{}
	g.mu.Lock()
	held := make([]*Permit, 0, len(g.permits))
	for _, p := range g.permits {
		held = append(held, p)
		permits = append(permits, renewRequest{p.Admitted, p.sent.Load()})
	}
	g.mu.Unlock()
	if len(held) == 0 && !always {
		return nil
	}
	sentAt := time.Now()
	request := map[string]any{"permit_ttl_ms": g.cfg.PermitTTL.Milliseconds(), "recount_every_ms": recountEvery.Milliseconds(), "permits": permits}
	var reply struct {
		Renewed []int `json:"renewed"`
	}
	if err := g.run(ctx, renewScript, request, &reply); err != nil {
		return fmt.Errorf("renew permits: %w", err)
	}
	if len(reply.Renewed) != len(held) {
		return fmt.Errorf("renew permits: %w: %d replies to %d permits", ErrUnavailable, len(reply.Renewed), len(held))
	}
	for i, p := range held {
		if reply.Renewed[i] == 1 {
			p.confirm(sentAt)
		} else {
			p.lost.Store(true) // even if its call is registered again: no other request may start on it
		}
	}
	return nil
}
