package admission

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/tasks"
)

// Gates decides which calls may go. Safe for concurrent use.
type Gates struct {
	rdb redis.UniversalClient
	cfg Config

	mu      sync.Mutex
	permits map[string]*Permit // by attempt id: held, to be renewed
}

// New checks the configuration; it does not talk to Redis.
func New(rdb redis.UniversalClient, cfg Config) (*Gates, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure admission: %w", err)
	}
	return &Gates{rdb: rdb, cfg: cfg, permits: map[string]*Permit{}}, nil
}

// Close releases what Run does not own. It never fails today.
func (g *Gates) Close() error { return nil }

// Run renews the permits of this process until ctx ends. Without it a permit
// lasts PermitTTL.
func (g *Gates) Run(ctx context.Context) error {
	tick := time.NewTicker(g.cfg.RenewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			_ = g.renew(ctx) // permits that could not be renewed stop being Valid by themselves
		}
	}
}

// Acquire asks for one call. The error is a *Refusal, an *InFlight, or wraps
// ErrUnavailable.
func (g *Gates) Acquire(ctx context.Context, r Request) (*Permit, error) {
	asked := time.Now()
	args := g.header()
	args = append(args, 0, 1, r.Key, r.AttemptID, string(r.Path), r.Group, r.Generation, r.Units, flag(r.UnitsBounded),
		strings.Join(r.Exclude, ","), r.Pinned, rand.Int32(), rand.Int32())
	reply, err := g.run(ctx, exchangeScript, args)
	if err != nil {
		return nil, err
	}
	if len(reply) != 1 {
		return nil, fmt.Errorf("read admission reply: %w", ErrUnavailable)
	}
	return g.answer(r, reply[0], asked)
}

// Settle ends an attempt. Repeating it changes nothing.
func (g *Gates) Settle(ctx context.Context, p *Permit, s Settlement) error {
	g.mu.Lock()
	delete(g.permits, p.AttemptID)
	g.mu.Unlock()
	args := g.header()
	args = append(args, 1, p.Key, p.AttemptID, string(s.Outcome), s.Channel, s.Halt, flag(s.Probeable), s.Shut.Milliseconds(),
		flag(s.Counted), flag(s.PossiblyBilled), s.UnitsUsed, s.Latency.Milliseconds(), s.Backoff.Milliseconds(), flag(s.ClearRecord),
		s.RequestID, 0)
	_, err := g.run(ctx, exchangeScript, args)
	return err
}

func (g *Gates) header() []any {
	args := []any{g.cfg.Prefix, g.cfg.PermitTTL.Milliseconds(), len(g.cfg.Sources)}
	for _, s := range g.cfg.Sources {
		args = append(args, s.Name, s.Fingerprint)
	}
	return args
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (g *Gates) answer(r Request, entry any, asked time.Time) (*Permit, error) {
	f := reader{list: asList(entry)}
	switch code := f.int(); {
	case code == 1:
		p := f.permit(r)
		if f.bad {
			break
		}
		p.trusted = g.cfg.PermitTTL - 2*time.Second
		p.confirm(asked)
		g.mu.Lock()
		g.permits[p.AttemptID] = p
		g.mu.Unlock()
		return p, nil
	case code == 0:
		ref := &Refusal{Gate: Gate(f.text()), Source: f.text(), RetryAfter: f.millis(), NoSource: f.bool(), Never: f.bool()}
		if !f.bad {
			return nil, ref
		}
	case code == 2:
		until, now := f.int(), f.int()
		if !f.bad {
			return nil, &InFlight{Until: time.Now().Add(time.Duration(until-now) * time.Millisecond)}
		}
	}
	return nil, fmt.Errorf("read admission reply: %w", errors.Join(ErrUnavailable, errReply))
}

var errReply = errors.New("unknown reply")

// renew sends one renewal for all held permits.
func (g *Gates) renew(ctx context.Context) error {
	g.mu.Lock()
	held := make([]*Permit, 0, len(g.permits))
	for _, p := range g.permits {
		held = append(held, p)
	}
	g.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	asked := time.Now()
	args := []any{g.cfg.Prefix, g.cfg.PermitTTL.Milliseconds()}
	for _, p := range held {
		args = append(args, p.Key, p.AttemptID, p.Source, string(p.Path), p.Group, flag(p.sent.Load()))
	}
	reply, err := g.run(ctx, renewScript, args)
	if err != nil {
		return err
	}
	for i, p := range held {
		if i < len(reply) && reply[i] == int64(0) {
			p.confirm(asked)
		} else if i < len(reply) && reply[i] == int64(2) || !p.sent.Load() {
			p.lost.Store(true)
		}
	}
	return nil
}

// reader takes a reply apart and remembers whether it had the expected shape.
type reader struct {
	list []any
	bad  bool
}

func asList(v any) []any { l, _ := v.([]any); return l }

func (r *reader) next() any {
	if len(r.list) == 0 {
		r.bad = true
		return nil
	}
	v := r.list[0]
	r.list = r.list[1:]
	return v
}

func (r *reader) int() int64 {
	n, ok := r.next().(int64)
	r.bad = r.bad || !ok
	return n
}

func (r *reader) text() string {
	s, ok := r.next().(string)
	r.bad = r.bad || !ok
	return s
}

func (r *reader) bool() bool            { return r.int() != 0 }
func (r *reader) millis() time.Duration { return time.Duration(r.int()) * time.Millisecond }

func (r *reader) moment() time.Time {
	ms := r.int()
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func (r *reader) permit(q Request) *Permit {
	p := &Permit{Key: q.Key, AttemptID: q.AttemptID, Path: q.Path, Group: q.Group, Units: q.Units, generation: q.Generation}
	p.Source, p.Epoch, p.admitted = r.text(), r.int(), r.moment()
	_ = r.int() // start delay
	p.Probe = r.bool()
	_, _ = r.text(), r.text() // periods
	p.Record = Record{Generation: r.int(), Counted: int(r.int()), PossiblyBilled: int(r.int()), Streak: int(r.int()), SameOutcome: int(r.int()),
		Throttles: int(r.int()), LastOutcome: tasks.Outcome(r.text()), Spent: r.millis(), FirstFailure: r.moment()}
	lost := Lost{AttemptID: r.text(), Source: r.text(), Units: r.int(), At: r.moment()}
	if lost.AttemptID != "" {
		p.Lost = &lost
	}
	return p
}
