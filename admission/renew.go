package admission

import (
	"context"
	"time"
)

// recountEvery is how often one worker of the fleet counts the permits anew.
const recountEvery = 30 * time.Second

// Renew confirms all permits of this process in one call; Run does it every
// Config.RenewEvery. A permit that is gone is registered again if its call may
// be on its way (Valid said yes), and is lost otherwise.
func (g *Gates) Renew(ctx context.Context) error { return g.renew(ctx, false) }

// renew with idle also goes to Redis when nothing is held: the recount and the
// repair of a stepped clock must not depend on somebody getting a permit.
func (g *Gates) renew(ctx context.Context, idle bool) error {
	g.mu.Lock()
	held := make([]*Permit, 0, len(g.permits))
	for _, p := range g.permits {
		held = append(held, p)
	}
	g.mu.Unlock()
	if len(held) == 0 && !idle {
		return nil
	}
	asked := time.Now()
	args := []any{g.cfg.Prefix, g.cfg.PermitTTL.Milliseconds(), recountEvery.Milliseconds()}
	for _, p := range held {
		args = append(args, p.Key, p.AttemptID, p.Source, string(p.Path), p.Group, flag(p.sent.Load()), p.Units, p.admitted, p.Epoch, p.budgets)
	}
	reply, err := g.run(ctx, renewScript, args)
	if err != nil {
		return err
	}
	if len(reply) != len(held) {
		return unreadable()
	}
	for i, p := range held {
		switch reply[i] {
		case int64(0):
			p.confirm(asked)
		case int64(1): // its call is on its way; nothing new may start on it
			p.lost.Store(true)
		default:
			p.lost.Store(true)
		}
	}
	return nil
}
