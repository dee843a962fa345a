package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/tasks"
)

// Closing a path (spec R15, R19): when every source of it is shut for longer
// than a slot waits, its queue is paused, so that the backlog stays pending, in
// order, where the web UI shows it. The queue opens again as soon as the gates
// would let a call go. A person's pause and an automatic one never undo each
// other: asynq's flag is set while the set of reasons is not empty.

// tendEvery is how often asynq's flags are compared with the reasons.
const tendEvery = time.Second

// pauseTries and pausePace are how often and how soon a queue is looked at
// again, when other workers close it at the same moment.
const (
	pauseTries = 50
	pausePace  = 20 * time.Millisecond
)

// tender keeps one worker at a time at the tending. Nothing depends on there
// being only one: every step is checked against the state it saw.
const (
	tenderKey  = "reprise:{tend}:worker" // string with TTL: who tends
	tenderTerm = 1500 * time.Millisecond
)

// unitsKey is a hash: queue → units of the task that closed it last, which is
// what a budget must have left before any worker opens it again. No TTL.
const unitsKey = "reprise:{tend}:units"

// paths closes and opens queues. Safe for concurrent use.
type paths struct {
	w         *Worker
	pauses    *admission.Pauses
	inspector *asynq.Inspector
	id        string

	mu      sync.Mutex
	closers map[string]*closing // by queue
}

// closing is the closing of one queue; whoever holds its mutex does it.
type closing struct {
	mu sync.Mutex
	at time.Time // when this worker last closed the queue
	ok bool
}

func newPaths(w *Worker) *paths {
	return &paths{
		w: w, pauses: w.gates.Pauses(), inspector: asynq.NewInspectorFromRedisClient(w.queue), id: newAttemptID(), closers: map[string]*closing{},
	}
}

// close pauses a queue until a gate opens. Of the many deliveries that are
// refused at the same moment one does it, and the others wait for it: a slot
// that is given back earlier would take one more task out of the queue. It is
// false when the queue could not be paused.
func (p *paths) close(ctx context.Context, queue string, units int64, s shutter) bool {
	c := p.closer(queue)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ok && time.Since(c.at) < tendEvery {
		return true
	}
	c.ok = p.pause(ctx, queue, units, s)
	c.at = time.Now()
	return c.ok
}

func (p *paths) closer(queue string) *closing {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.closers[queue]
	if c == nil {
		c = &closing{}
		p.closers[queue] = c
	}
	return c
}

func (p *paths) pause(ctx context.Context, queue string, units int64, s shutter) bool {
	if err := p.w.queue.HSet(ctx, unitsKey, queue, units).Err(); err != nil {
		p.w.warn.do("pause", "a queue whose sources are shut could not be paused", err)
		return false
	}
	reason := admission.PauseReason{
		Name: admission.AutoReason + string(s.gate), Until: time.Now().Add(s.wait), By: "worker-" + p.id[:8], Evidence: s.evidence(),
	}
	changed, err := p.agree(ctx, queue, reason)
	if err != nil {
		p.w.warn.do("pause", "a queue whose sources are shut could not be paused", err)
		return false
	}
	if changed {
		level, msg := slog.LevelWarn, "queue paused: every source is shut"
		if s.busy { // the pace that somebody asked for
			level, msg = slog.LevelInfo, "queue paused: the rate is used up"
		}
		p.w.log.Log(ctx, level, msg, "queue", queue, "gate", string(s.gate), "until", reason.Until.UTC())
	}
	return true
}

// agree adds a reason and sets asynq's flag. Of workers that close the queue at
// the same moment one wins; the others look again, because theirs must be
// closed too before they give a slot back.
func (p *paths) agree(ctx context.Context, queue string, reason admission.PauseReason) (changed bool, err error) {
	tick := time.NewTicker(pausePace)
	defer tick.Stop()
	for range pauseTries {
		state, err := p.pauses.State(ctx, queue)
		if err == nil && !near(state, reason) {
			var more bool
			state, more, err = p.pauses.Add(ctx, queue, reason)
			changed = changed || more
		}
		if err == nil {
			err = p.reconcile(ctx, queue, state)
		}
		if !errors.Is(err, admission.ErrRaced) {
			return changed, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return changed, err
		}
	}
	return changed, admission.ErrRaced
}

// near reports whether the reason is there already and ends at about the time.
func near(state admission.PauseState, reason admission.PauseReason) bool {
	for _, r := range state.Reasons {
		if r.Name == reason.Name {
			return r.Until.Sub(reason.Until).Abs() < tendEvery
		}
	}
	return false
}

// run tends until ctx ends.
func (p *paths) run(ctx context.Context) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.w.sitout.review(ctx)
		mine, err := p.w.queue.SetNX(ctx, tenderKey, p.id, tenderTerm).Result()
		if err != nil {
			continue
		}
		look, queues := p.reopen, p.queues(ctx)
		if mine || p.stillMine(ctx) {
			look = p.tend
			if err := p.w.replays.halts(ctx, queues); err != nil && ctx.Err() == nil {
				p.w.warn.do("halts", "the halts of the sources could not be looked at", err)
			}
		}
		for _, queue := range queues {
			if err := look(ctx, queue); err != nil && ctx.Err() == nil {
				p.w.warn.do("pause", "the pause reasons of a queue could not be looked at", err)
			}
		}
	}
}

// stillMine extends the term of the worker that tends already.
func (p *paths) stillMine(ctx context.Context) bool {
	who, err := p.w.queue.Get(ctx, tenderKey).Result()
	return err == nil && who == p.id && p.w.queue.PExpire(ctx, tenderKey, tenderTerm).Err() == nil
}

// queues are those asynq knows that are ours.
func (p *paths) queues(ctx context.Context) []string {
	known, err := p.w.queue.SMembers(ctx, "asynq:queues").Result()
	if err != nil {
		return nil
	}
	known = slices.DeleteFunc(known, func(q string) bool { _, _, err := tasks.SplitQueue(q); return err != nil })
	slices.Sort(known)
	return known
}

// tend brings one queue's reasons up to date with the gates, and asynq's flag
// with the reasons.
func (p *paths) tend(ctx context.Context, queue string) error {
	state, err := p.pauses.State(ctx, queue)
	if err != nil {
		return err
	}
	if auto := autoReasons(state); len(auto) > 0 {
		if state, err = p.review(ctx, queue, state, auto); err != nil {
			return err
		}
	}
	if err := p.reconcile(ctx, queue, state); err != nil {
		return err
	}
	return p.w.replays.tend(ctx, queue)
}

// reopen is what a worker that does not tend does: it opens a closed queue if
// the gates would let its own calls go. They may be open to it alone, because
// it has another token than the one that was refused.
func (p *paths) reopen(ctx context.Context, queue string) error {
	n, err := p.w.queue.Exists(ctx, "asynq:{"+queue+"}:paused").Result()
	if err != nil {
		return fmt.Errorf("read asynq's pause flag: %w", err)
	}
	if n == 0 {
		return nil
	}
	state, err := p.pauses.State(ctx, queue)
	if err != nil {
		return err
	}
	if len(autoReasons(state)) == 0 {
		return nil
	}
	_, shut, err := p.asks(ctx, queue)
	if err != nil || shut {
		return err
	}
	if state, err = p.open(ctx, queue); err != nil {
		return err
	}
	return p.reconcile(ctx, queue, state)
}

// shutter is what keeps every source of a queue shut.
type shutter struct {
	gate   admission.Gate // of the source that opens first
	source string         // empty when no source serves the queue at all
	wait   time.Duration  // until it may open
	busy   bool           // it is not shut, but its rate is taken until then
}

// noSourceWait is how long a queue that no source serves is closed at a time.
const noSourceWait = time.Hour

// busyMin is the least wait for a rate that closes a queue or keeps it closed;
// for permits nobody waits that long. A queue closes when the wait is longer
// than a slot's and opens at half of it, so that a slow rate, whose wait is
// about a slot's, does not move it back and forth.
const busyMin = 5 * time.Second

// evidence is the reason for people.
func (s shutter) evidence() string {
	if s.source == "" {
		return "no source may serve this queue"
	}
	if s.busy {
		return fmt.Sprintf("the rate of every source is used up; %s takes a call first, by gate %s", s.source, s.gate)
	}
	return fmt.Sprintf("every source is shut; %s opens first, by gate %s", s.source, s.gate)
}

// asks is what the gates would say to a call of the queue for as many units as
// the task that closed it.
func (p *paths) asks(ctx context.Context, queue string) (s shutter, shut bool, err error) {
	units, err := p.w.queue.HGet(ctx, unitsKey, queue).Result()
	if errors.Is(err, redis.Nil) {
		return p.ask(ctx, queue, 1)
	}
	if err != nil {
		return s, false, fmt.Errorf("read what closed the queue: %w", err)
	}
	n, err := strconv.ParseInt(units, 10, 64)
	if err != nil {
		return s, false, fmt.Errorf("read what closed the queue: %w", err)
	}
	return p.ask(ctx, queue, n)
}

// ask is what the gates would say to a call for some task of the queue, one
// that is bound to no source.
func (p *paths) ask(ctx context.Context, queue string, units int64) (s shutter, shut bool, err error) {
	path, group, err := tasks.SplitQueue(queue)
	if err != nil {
		return s, false, err
	}
	openings, err := p.w.gates.Check(ctx, path, group, units)
	if err != nil {
		return s, false, err
	}
	if len(openings) == 0 {
		return shutter{gate: admission.GateNoCandidate, wait: noSourceWait}, true, nil
	}
	first := slices.MinFunc(openings, func(a, b admission.SourceCheck) int { return cmp.Compare(a.Wait, b.Wait) })
	_, _, shut = admission.AllBlocked(openings)
	s = shutter{gate: first.Gate, source: first.Source, wait: first.Wait, busy: !shut}
	return s, shut || first.Wait > max(p.w.opts.SlotWait/2, busyMin), nil
}

func autoReasons(s admission.PauseState) []admission.PauseReason {
	var out []admission.PauseReason
	for _, r := range s.Reasons {
		if strings.HasPrefix(r.Name, admission.AutoReason) {
			out = append(out, r)
		}
	}
	return out
}

// review opens a queue whose gates would let a call go, and keeps one closed
// whose gates are still shut when its time runs out: opening it would only
// move another slotful of tasks to the retry set.
func (p *paths) review(ctx context.Context, queue string, state admission.PauseState, auto []admission.PauseReason) (admission.PauseState, error) {
	why, shut, err := p.asks(ctx, queue)
	if err != nil {
		return state, err
	}
	if !shut {
		return p.open(ctx, queue)
	}
	now := time.Now()
	for _, r := range auto {
		if r.Until.IsZero() || r.Until.Sub(now) > 3*tendEvery || why.wait <= p.w.opts.SlotWait {
			continue
		}
		next, _, err := p.pauses.Add(ctx, queue, admission.PauseReason{
			Name: admission.AutoReason + string(why.gate), Until: now.Add(why.wait), By: r.By, Evidence: why.evidence(),
		})
		if err != nil {
			return state, err
		}
		state = next
	}
	return state, nil
}

// open takes the automatic reasons away.
func (p *paths) open(ctx context.Context, queue string) (admission.PauseState, error) {
	state, changed, err := p.pauses.Remove(ctx, queue, admission.AutoReason+"*")
	if err == nil && changed {
		p.w.log.Info("queue opens: a source takes calls again", "queue", queue)
	}
	return state, err
}

// reconcile makes asynq's flag what the reasons say; a flag that a person set
// or cleared elsewhere changes the reasons instead.
func (p *paths) reconcile(ctx context.Context, queue string, state admission.PauseState) error {
	n, err := p.w.queue.Exists(ctx, "asynq:{"+queue+"}:paused").Result()
	if err != nil {
		return fmt.Errorf("read asynq's pause flag: %w", err)
	}
	action := admission.Reconcile(state, n == 1)
	if err := p.pauses.Apply(ctx, queue, state, action, p.inspector); err != nil {
		return err
	}
	switch action {
	case admission.ActionAdopt:
		p.w.log.Info("queue was paused elsewhere: taken as a person's pause", "queue", queue)
	case admission.ActionDrop:
		p.w.log.Info("queue was opened elsewhere", "queue", queue)
	case admission.ActionNone, admission.ActionPause, admission.ActionUnpause: // ours
	}
	return nil
}
