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

// ErrAttemptSettled says that the attempt id was used and settled before: the
// caller must make a new one.
var ErrAttemptSettled = errors.New("attempt was settled already")

// ErrTaskEnded says that the task already has its verdict, in a settlement that is
// not in SQL yet (EndedKey).
var ErrTaskEnded = errors.New("task has its verdict already")

var (
	errLimitsMissing = errors.New("limits are not in Redis")
	errClockSkew     = errors.New("the clock of Redis differs from this machine's by more than a day: no unit budget can be charged; correct the clocks")
	errReply         = errors.New("unknown reply")
)

// Acquire asks for one call, in about one round trip. It never waits for a gate to
// open, but up to Config.Lookahead for the start it was promised. After a refusal
// Wait returns when to ask again. The error is a *Refusal, an *InFlight, a
// *MissingPeriods, ErrTaskEnded, ErrAttemptSettled, the end of ctx, or wraps
// ErrUnavailable; with any error there is no permit.
func (g *Gates) Acquire(ctx context.Context, r Request) (*Permit, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	if refusal := g.waiters.refuseNewcomer(r); refusal != nil {
		return nil, refusal
	}
	p, start, err := g.acquire(ctx, r)
	if errors.Is(err, errLimitsMissing) {
		if _, err = g.SeedLimits(ctx); err == nil {
			p, start, err = g.acquire(ctx, r)
		}
	}
	if _, refused := errors.AsType[*Refusal](err); !refused {
		g.waiters.forget(r.Key)
	}
	if err != nil {
		return nil, err
	}
	if start <= 0 {
		return p, nil
	}
	if err := sleep(ctx, start); err != nil {
		g.SettleLater(p, unused)
		return nil, err
	}
	return p, nil
}

// unused settles a permit that no call was made with.
var unused = CallReport{Outcome: tasks.Interrupted, Channel: tasks.ChannelNone}

func (r Request) check() error {
	switch {
	case r.Key == "" || r.AttemptID == "":
		return errors.New("request has no Key or no AttemptID")
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

// failure is why the gates could not decide; nil if they did.
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
	o.abandoned = func(a answer) { g.giveBack(r, a) }
	bounded, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	a := g.batcher.do(bounded, o)
	switch {
	case a.err == nil:
		return g.read(r, a)
	case errors.Is(a.err, ErrUnavailable):
		g.giveBack(r, a) // it may have been granted and only the answer got lost
		return nil, 0, a.err
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	}
	return nil, 0, fmt.Errorf("acquire: %w: %w", ErrUnavailable, a.err)
}

// read turns the answer to one acquire into a permit or an error.
func (g *Gates) read(r Request, a answer) (*Permit, time.Duration, error) {
	reply := a.reply
	switch reply.Result {
	case resultGranted:
		p := reply.Record.permit(r)
		p.trusted = g.cfg.PermitTTL - trustMargin
		p.confirm(a.asked)
		g.mu.Lock()
		g.permits[p.AttemptID] = p
		g.mu.Unlock()
		return p, time.Duration(reply.StartIn) * time.Microsecond, nil
	case resultRefused:
		refusal := &Refusal{
			Gate: reply.Gate, Source: reply.Source, RetryAfter: millis(reply.WaitMillis), AllBlocked: reply.AllBlocked, Permanent: reply.Permanent,
			Reason: reply.Reason,
		}
		usedUp := refusal.Gate.isBudget() || refusal.Gate == GateHalt && refusal.Reason == string(tasks.Quota)
		refusal.FailFast = usedUp && g.cfg.QuotaFull == tasks.QuotaFailFast
		return nil, 0, refusal
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

// giveBack settles an acquire that nobody waits for any more, or whose answer is lost.
func (g *Gates) giveBack(r Request, a answer) {
	p := &Permit{Key: r.Key, AttemptID: r.AttemptID, Path: r.Path, Group: r.Group, generation: r.Generation}
	if a.err == nil {
		if a.reply.Result != resultGranted {
			return
		}
		p = a.reply.Record.permit(r)
	}
	g.SettleLater(p, unused)
}

// Wait waits until the caller should Acquire again after a refusal, or until ctx ends.
// Within this process it is first come, first served. A caller may get its turn before
// Refusal.RetryAfter has passed.
func (g *Gates) Wait(ctx context.Context, r Request, refusal *Refusal) error {
	if !refusal.Gate.isBusy() {
		// A blocked source reopens for all callers at once: spread them.
		return sleep(ctx, refusal.RetryAfter+rand.N(min(refusal.RetryAfter/10, 500*time.Millisecond)+1))
	}
	l := g.waiters
	w := l.join(r, refusal)
	timer := time.NewTimer(time.Until(w.due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			l.leave(lineOf(r), w, true)
			return ctx.Err()
		case <-w.turn:
			return nil
		case <-timer.C:
			if l.takeTurn(lineOf(r), w) {
				return nil
			}
			timer.Reset(time.Until(w.due))
		}
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
