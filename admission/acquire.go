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

// ErrAttemptSettled means that the attempt id was settled before. The caller must make a new one.
var ErrAttemptSettled = errors.New("attempt is already settled")

// ErrTaskEnded means that the task has its verdict, in a settlement that is not in SQL yet (EndedKey).
var ErrTaskEnded = errors.New("task already has a verdict")

var (
	errLimitsMissing = errors.New("limits are not in Redis")
	errClockSkew     = errors.New("the Redis clock and this machine's clock differ by more than a day, so unit budgets cannot be charged: correct the clocks")
	errReply         = errors.New("unknown reply")
)

// Acquire acquires a permit for one call, in about one round trip. It does not wait for a gate to open, but up to
// Config.Lookahead for a promised start. After a refusal, Wait returns when to acquire again. The error is a *Refusal, an
// *InFlight, a *MissingPeriods, ErrTaskEnded, ErrAttemptSettled or the end of ctx, or it wraps ErrUnavailable.
func (g *Gates) Acquire(ctx context.Context, r Request) (*Permit, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	if refusal := g.waiters.refuseNewcomer(r); refusal != nil {
		return nil, refusal
	}
	var p *Permit
	var start time.Duration
	err := g.withLimits(ctx, func() (err error) {
		p, start, err = g.acquire(ctx, r)
		return err
	})
	if _, refused := errors.AsType[*Refusal](err); !refused {
		g.waiters.forget(r.Key)
	}
	if err != nil {
		return nil, err
	}
	if start > 0 {
		if err := sleep(ctx, start); err != nil {
			g.SettleLater(p, unused)
			return nil, err
		}
	}
	return p, nil
}

// unused settles a permit without a call.
var unused = CallReport{Outcome: tasks.Interrupted, Channel: tasks.ChannelNone}

func (r Request) check() error {
	switch {
	case r.Key == "" || r.AttemptID == "":
		return errors.New("request needs a Key and an AttemptID")
	case strings.ContainsAny(r.Key+r.AttemptID, " \n"):
		return errors.New("request has spaces in its Key or AttemptID")
	case strings.ContainsAny(r.Group, ",: "):
		return fmt.Errorf("group %q must not contain commas, colons or spaces", r.Group)
	case r.Units < 0:
		return fmt.Errorf("request has negative Units %d", r.Units)
	}
	_, err := tasks.ParsePath(string(r.Path))
	return err
}

// withLimits calls decide. If Redis has no limits, it seeds them and calls decide once more.
func (g *Gates) withLimits(ctx context.Context, decide func() error) error {
	err := decide()
	if !errors.Is(err, errLimitsMissing) {
		return err
	}
	if _, err := g.SeedLimits(ctx); err != nil {
		return err
	}
	return decide()
}

// failure returns why the gates could not decide; nil if they did.
func (r result) failure() error {
	switch r {
	case resultLimitsMissing:
		return fmt.Errorf("%w: %w", ErrUnavailable, errLimitsMissing)
	case resultClockSkew:
		return fmt.Errorf("%w: %w", ErrUnavailable, errClockSkew)
	default:
		return nil
	}
}

// acquire returns a permit and how long to wait for its start.
func (g *Gates) acquire(ctx context.Context, r Request) (*Permit, time.Duration, error) {
	o := &op{acquire: &acquireRequest{Request: r, RandomA: rand.Int32(), RandomB: rand.Int32()}}
	o.abandoned = func(reply opReply) { g.giveBack(r, reply) }
	bounded, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	reply := g.batcher.do(bounded, o)
	switch {
	case reply.err == nil:
		return g.read(r, reply)
	case errors.Is(reply.err, ErrUnavailable):
		g.giveBack(r, reply) // Redis may have granted it although the reply was lost
		return nil, 0, reply.err
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	}
	return nil, 0, fmt.Errorf("acquire: %w: %w", ErrUnavailable, reply.err)
}

// read returns the permit of a reply, or its error.
func (g *Gates) read(r Request, got opReply) (*Permit, time.Duration, error) {
	reply := got.acquired
	switch reply.Result {
	case resultGranted:
		p := reply.Record.permit(r)
		p.trusted = g.cfg.PermitTTL - trustMargin
		p.confirm(got.sentAt)
		g.mu.Lock()
		g.permits[p.AttemptID] = p
		g.mu.Unlock()
		return p, time.Duration(reply.StartIn) * time.Microsecond, nil
	case resultRefused:
		refusal := reply.Refusal
		refusal.RetryAfter = millis(reply.WaitMillis)
		usedUp := refusal.Gate.isBudget() || refusal.Gate == GateHalt && refusal.Reason == string(tasks.Quota)
		refusal.FailFast = usedUp && g.cfg.QuotaFull == tasks.QuotaFailFast
		return nil, 0, &refusal
	case resultInFlight:
		return nil, 0, &InFlight{Until: time.Now().Add(millis(reply.WaitMillis))}
	case resultMissing:
		return nil, 0, g.missing(reply.Now, reply.Budgets)
	case resultAttemptSettled:
		return nil, 0, ErrAttemptSettled
	case resultTaskEnded:
		return nil, 0, ErrTaskEnded
	case resultLimitsMissing, resultClockSkew:
		return nil, 0, reply.Result.failure()
	}
	return nil, 0, fmt.Errorf("read admission reply: %w: %w %q", ErrUnavailable, errReply, reply.Result)
}

// giveBack settles an acquire whose caller is gone or whose reply was lost.
func (g *Gates) giveBack(r Request, got opReply) {
	p := &Permit{Admitted: Admitted{Key: r.Key, AttemptID: r.AttemptID, Path: r.Path, Group: r.Group, Generation: r.Generation}}
	if got.err == nil {
		if got.acquired.Result != resultGranted {
			return
		}
		p = got.acquired.Record.permit(r)
	}
	g.SettleLater(p, unused)
}
