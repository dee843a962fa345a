package admission

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"reprise/tasks"
)

// ErrAttemptSettled says that the attempt id was used and settled before: the caller
// must make a new one.
var ErrAttemptSettled = errors.New("attempt was settled already")

// ErrTaskEnded says that the task has its verdict already, in a settlement that SQL
// has not got yet (EndedKey).
var ErrTaskEnded = errors.New("task has its verdict already")

// Acquire asks for one call, in about one round trip; it never waits for a
// gate to open, at most Config.Lookahead for the start it was promised. After
// a refusal Wait tells when to ask again. The error is a *Refusal, an
// *InFlight, a *MissingPeriods, ErrEnded, ErrSettled, the end of ctx, or wraps
// ErrUnavailable; with any error there is no permit.
func (g *Gates) Acquire(ctx context.Context, r Request) (*Permit, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	if refusal := g.waiters.stepBack(r); refusal != nil {
		return nil, refusal
	}
	p, start, err := g.ask(ctx, r)
	if errors.Is(err, errUnseeded) {
		if _, err = g.SeedLimits(ctx); err == nil {
			p, start, err = g.ask(ctx, r)
		}
		if errors.Is(err, errUnseeded) {
			err = fmt.Errorf("load limits: %w: %w", ErrUnavailable, err)
		}
	}
	if _, refused := errors.AsType[*Refusal](err); !refused {
		g.waiters.over(r.Key)
	}
	if err != nil {
		return nil, err
	}
	if start <= 0 {
		return p, nil
	}
	timer := time.NewTimer(start)
	defer timer.Stop()
	select {
	case <-timer.C:
		return p, nil
	case <-ctx.Done():
		g.SettleLater(p, unsent)
		return nil, ctx.Err()
	}
}

var errUnseeded = errors.New("limits are not loaded")

// unsent settles a permit nobody used.
var unsent = CallReport{Outcome: tasks.Interrupted, Channel: tasks.ChannelNone}

func (r Request) check() error {
	switch {
	case r.Key == "" || r.AttemptID == "":
		return errors.New("request has no Key or no AttemptID")
	case strings.ContainsAny(r.Key+r.AttemptID, " \n") || r.AttemptID == "-":
		return errors.New("request has spaces in its Key or AttemptID")
	case strings.ContainsAny(r.Group, ",: "):
		return fmt.Errorf("group %q must not contain commas, colons or spaces", r.Group)
	case r.Units < 0:
		return fmt.Errorf("request has negative Units %d", r.Units)
	}
	_, err := tasks.ParsePath(string(r.Path))
	return err
}

func (g *Gates) ask(ctx context.Context, r Request) (*Permit, time.Duration, error) {
	o := &op{args: []any{
		r.Key, r.AttemptID, string(r.Path), r.Group, r.Generation, r.Units, flag(r.UnitsBounded), strings.Join(r.Exclude, ","), r.Pinned,
		rand.Int32(), rand.Int32(),
	}}
	o.orphan = func(a answer) { g.giveBack(r, a) }
	bounded, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	a := g.combiner.do(bounded, o)
	switch {
	case a.err == nil:
		return g.read1(r, a)
	case errors.Is(a.err, ErrUnavailable):
		g.giveBack(r, a) // it may have been granted and only the answer got lost
		return nil, 0, a.err
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	}
	return nil, 0, fmt.Errorf("acquire: %w: %w", ErrUnavailable, a.err)
}

// read1 reads the answer to one acquire.
func (g *Gates) read1(r Request, a answer) (*Permit, time.Duration, error) {
	f := reader{list: asList(a.entry)}
	code := f.int()
	if f.bad {
		return nil, 0, unreadable()
	}
	switch code {
	case 0:
		ref := &Refusal{Gate: Gate(f.text()), Source: f.text(), RetryAfter: f.millis(), AllBlocked: f.bool(), Permanent: f.bool(), Reason: f.text()}
		full := ref.Gate.isBudget() || ref.Gate == GateHalt && ref.Reason == string(tasks.Quota)
		ref.FailFast = full && g.cfg.QuotaFull == tasks.QuotaFailFast
		if !f.bad {
			return nil, 0, ref
		}
	case 1:
		p, start := f.permit(r)
		if !f.bad {
			p.trusted = g.cfg.PermitTTL - trustMargin
			p.confirm(a.asked)
			g.mu.Lock()
			g.permits[p.AttemptID] = p
			g.mu.Unlock()
			return p, start, nil
		}
	case 2:
		until, now := f.int(), f.int()
		if !f.bad {
			return nil, 0, &InFlight{Until: time.Now().Add(time.Duration(until-now) * time.Millisecond)}
		}
	case 3:
		found := f.int()
		return nil, 0, g.missing(found, f.list)
	case 4:
		return nil, 0, errUnseeded
	case 5:
		return nil, 0, ErrAttemptSettled
	case 6:
		return nil, 0, ErrTaskEnded
	}
	return nil, 0, unreadable()
}

// giveBack settles an acquire whose caller is gone, or whose answer is.
func (g *Gates) giveBack(r Request, a answer) {
	p := &Permit{Key: r.Key, AttemptID: r.AttemptID, Path: r.Path, Group: r.Group, generation: r.Generation}
	if a.err == nil {
		f := reader{list: asList(a.entry)}
		if f.int() != 1 {
			return
		}
		if granted, _ := f.permit(r); !f.bad {
			p = granted
		}
	}
	g.SettleLater(p, unsent)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
