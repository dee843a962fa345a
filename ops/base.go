package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/queue"
	"reprise/internal/text"
	"reprise/store"
	"reprise/tasks"

	"github.com/redis/go-redis/v9"
)

// Options are the connections and settings of an Ops. A connection that no called report or action needs may be nil; a
// report that needs it panics.
type Options struct {
	// Redis is read by reports: a client with short timeouts, such as redisconn.Admission. If it is nil, lists of tasks do
	// not say what tasks wait for.
	Redis redis.UniversalClient
	// Queue enqueues replayed tasks: a client such as redisconn.Queue.
	Queue redis.UniversalClient
	// Store stores results, calls and costs.
	Store *store.Store
	// Ledger is the upload ledger in the store's database.
	Ledger *idempotency.Ledger
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Zone is the time zone of days and of times in sentences. Default UTC.
	Zone *time.Location
	// MonthAnchor is the first day of a budget month. Default 1.
	MonthAnchor int
	// Price is the price of 1,000 units in dollars. Default 0: unknown.
	Price float64
	// MaxAttempts and MaxPossiblyBilled are the workers' budgets. Reports show them beside what a task has used.
	MaxAttempts, MaxPossiblyBilled int
}

// base is shared by all reports and actions.
type base struct {
	Options
	queue *queue.Client
}

func newBase(o Options) *base {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	o.MonthAnchor = max(o.MonthAnchor, 1)
	b := &base{Options: o}
	if o.Redis != nil {
		b.queue = queue.New(o.Redis, admission.DefaultPrefix)
	}
	return b
}

// times formats times in the operator's zone, relative to now.
func (b *base) times() text.Times { return text.Times{Zone: b.Zone, Now: b.Now()} }

// costOf returns the price of units, nil if it is unknown.
func (b *base) costOf(units int64) *float64 {
	if b.Price == 0 {
		return nil
	}
	cost := float64(units) * b.Price / 1000
	return &cost
}

// gates are admission's gates with the limits in force. Sources and groups are read from Redis, where workers wrote
// them, because an operator's process must not seed limits.
type gates struct {
	*admission.Gates
	limits   []admission.Limit
	revision admission.Revision // Number 0 = no worker has written limits
	sources  []string
	groups   []string
}

func (b *base) gates(ctx context.Context) (*gates, error) {
	reader, err := b.gatesOf(nil)
	if err != nil {
		return nil, err
	}
	g := &gates{Gates: reader}
	if g.limits, g.revision, err = reader.LimitsInForce(ctx); err != nil {
		return nil, err
	}
	for _, l := range g.limits {
		if group, ok := strings.CutPrefix(l.Scope, admission.ScopeOfGroup("")); ok {
			g.groups = append(g.groups, group)
		} else if source, _, ok := strings.Cut(l.Scope, ":"); ok {
			g.sources = append(g.sources, source)
		}
	}
	g.groups, g.sources = distinct(g.groups), distinct(g.sources)
	if len(g.sources) > 0 {
		g.Gates, err = b.gatesOf(g.sources)
	}
	return g, err
}

// seeded returns the gates for a change. It fails with ErrNoLimits if no worker has written limits.
func (b *base) seeded(ctx context.Context) (*gates, error) {
	g, err := b.gates(ctx)
	if err != nil {
		return nil, err
	}
	return g, g.seeded()
}

// seeded returns ErrNoLimits if no worker has written limits.
func (g *gates) seeded() error {
	if g.revision.Number == 0 {
		return ErrNoLimits
	}
	return nil
}

// gatesOf returns gates without groups, because SetLimits would seed groups that are new.
func (b *base) gatesOf(sources []string) (*admission.Gates, error) {
	cfg := admission.DefaultConfig()
	cfg.TimeZone, cfg.MonthAnchor = b.Zone.String(), b.MonthAnchor
	if len(sources) > 0 {
		cfg.Sources = nil
	}
	for _, name := range sources {
		cfg.Sources = append(cfg.Sources, admission.SourceConfig{Name: name})
	}
	cfg.Groups = map[string]admission.Group{}
	g, err := admission.New(b.Redis, cfg)
	if err != nil {
		return nil, fmt.Errorf("read the gates: %w", err)
	}
	return g, nil
}

// queues returns the queues of all paths and groups in force, and the queues that asynq has seen. They are sorted by
// path and name. Queues of other applications come last.
func (b *base) queues(ctx context.Context, g *gates) ([]string, error) {
	seen, err := b.queue.All(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, path := range tasks.Paths {
		own := slices.DeleteFunc(slices.Clone(seen), func(q string) bool { return !serves(path, q) || q == path.Queue("") })
		for _, group := range g.groups {
			own = append(own, path.Queue(group))
		}
		out = append(append(out, path.Queue("")), distinct(own)...)
	}
	for _, q := range seen {
		if !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out, nil
}

// serves reports whether a queue belongs to the path.
func serves(path tasks.Path, queue string) bool {
	p, _, err := tasks.SplitQueue(queue)
	return err == nil && p == path
}

// survey is the gates in force, their state and the names of all queues.
type survey struct {
	*base
	gates  *gates
	state  admission.State
	queues []string
}

func (b *base) survey(ctx context.Context) (*survey, error) {
	g, err := b.gates(ctx)
	if err != nil {
		return nil, err
	}
	v := &survey{base: b, gates: g}
	if v.state, err = g.State(ctx); err != nil {
		return nil, err
	}
	v.queues, err = b.queues(ctx, g)
	return v, err
}

// waitingOn counts the tasks that wait in the path's queues.
func (v *survey) waitingOn(ctx context.Context, path tasks.Path) (int64, error) {
	own := slices.DeleteFunc(slices.Clone(v.queues), func(q string) bool { return !serves(path, q) })
	stats, err := v.queue.AllStats(ctx, own)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, s := range stats {
		n += s.Waiting()
	}
	return n, nil
}

// stamp returns a time for a report, nil for the zero time.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// minutes returns how long n calls take at a rate of perMinute.
func minutes(n, perMinute int64) time.Duration {
	return time.Duration(float64(n) / float64(perMinute) * float64(time.Minute))
}
