package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/worker/record"
)

// pauseInterval is how often asynq's pause flags are compared with the reasons.
const pauseInterval = time.Second

// pauseUnits is a hash: queue → units of the task for which it was paused last.
// A budget must have so many left before any worker resumes the queue. No TTL.
const pauseUnits = "reprise:{upkeep}:pause_units"

// PauseController pauses a queue when every source is blocked for longer than
// a delivery waits in its slot, and resumes it when the gates would admit a
// call. The backlog stays pending, in order. An operator's pause and an
// automatic one never undo each other (docs/adr/0007-a-shut-path-pauses-its-queue.md).
// Safe for concurrent use.
type PauseController struct {
	gates    *admission.Gates
	queues   *queue.Client
	rdb      redis.UniversalClient
	leader   *Leader
	slotWait time.Duration
	log      *slog.Logger
	warn     *record.Warner

	mu    sync.Mutex
	state map[string]*pauseAttempt // by queue
}

// pauseAttempt is this worker's last pause of a queue. Its mutex is held while
// the queue is being paused.
type pauseAttempt struct {
	mu sync.Mutex
	at time.Time
	ok bool
}

// PauseConfig is what a PauseController works on.
type PauseConfig struct {
	Gates    *admission.Gates
	Queues   *queue.Client
	Redis    redis.UniversalClient
	Leader   *Leader
	SlotWait time.Duration // the longest wait of a delivery in its slot
	Log      *slog.Logger
	Warn     *record.Warner
}

// NewPauseController returns a controller. Pause works without Run, but then
// nothing resumes the queue.
func NewPauseController(c PauseConfig) *PauseController {
	return &PauseController{
		gates: c.Gates, queues: c.Queues, rdb: c.Redis, leader: c.Leader, slotWait: c.SlotWait, log: c.Log, warn: c.Warn,
		state: map[string]*pauseAttempt{},
	}
}

// Check reports why the gates admit no call of the queue for so many units;
// false when a source is available within a slot's wait, or when that is unknown.
func (p *PauseController) Check(ctx context.Context, queue string, units int64) (Blocked, bool) {
	b, blocked, err := p.check(ctx, queue, units)
	return b, err == nil && blocked && b.Wait > p.slotWait
}

// Pause pauses a queue until a source is available. Of many deliveries that
// are refused at the same moment one pauses it, and the others wait for that: a
// slot that is given back earlier would take one more task from the queue. It
// returns false if the queue could not be paused.
func (p *PauseController) Pause(ctx context.Context, queue string, units int64, b Blocked) bool {
	p.mu.Lock()
	a := p.state[queue]
	if a == nil {
		a = &pauseAttempt{}
		p.state[queue] = a
	}
	p.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ok && time.Since(a.at) < pauseInterval {
		return true
	}
	err := p.pause(ctx, queue, units, b)
	a.ok, a.at = err == nil, time.Now()
	if err != nil {
		p.warn.Warn("pause", "a queue whose sources are blocked could not be paused", err)
	}
	return a.ok
}

func (p *PauseController) pause(ctx context.Context, queue string, units int64, b Blocked) error {
	if err := p.rdb.HSet(ctx, pauseUnits, queue, units).Err(); err != nil {
		return fmt.Errorf("note the units of a paused queue: %w", err)
	}
	reason := p.reason(b)
	_, changed, err := p.queues.AddReason(ctx, queue, reason)
	if err != nil || !changed {
		return err
	}
	level, msg := slog.LevelWarn, "queue paused: every source is blocked"
	if b.Rate { // a limit that an operator set
		level, msg = slog.LevelInfo, "queue paused: the rate is used up"
	}
	p.log.Log(ctx, level, msg, "queue", queue, "gate", string(b.Gate), "until", reason.Until.UTC())
	return nil
}

func (p *PauseController) reason(b Blocked) admission.PauseReason {
	return admission.PauseReason{
		Name: admission.AutoReason + string(b.Gate), Until: time.Now().Add(b.Wait), By: "worker-" + p.leader.id[:8], Evidence: b.Evidence(),
	}
}

// Run reconciles the queues every second until ctx ends.
func (p *PauseController) Run(ctx context.Context) {
	Every(ctx, pauseInterval, func(ctx context.Context) {
		names, err := p.queues.Names(ctx)
		if err != nil {
			return // reported by deliveries
		}
		for _, name := range names {
			if p.leader.Leads() {
				err = p.reconcile(ctx, name)
			} else {
				err = p.resumeOwn(ctx, name)
			}
			if err != nil && ctx.Err() == nil {
				p.warn.Warn("pause", "the pause reasons of a queue could not be reconciled", err)
			}
		}
	})
}

// reconcile brings asynq's flag and the reasons in line, then the automatic
// reasons and the gates.
func (p *PauseController) reconcile(ctx context.Context, queue string) error {
	state, action, err := p.queues.Reconcile(ctx, queue)
	if err != nil {
		return err
	}
	switch action {
	case admission.ActionAdopt:
		p.log.Info("the queue was paused elsewhere; this counts as an operator's pause", "queue", queue)
	case admission.ActionDrop:
		p.log.Info("the queue was resumed elsewhere", "queue", queue)
	case admission.ActionNone, admission.ActionPause, admission.ActionUnpause: // its own
	}
	auto := automatic(state)
	if len(auto) == 0 {
		return nil
	}
	b, blocked, err := p.checkPaused(ctx, queue)
	if err != nil {
		return err
	}
	if !blocked {
		return p.resume(ctx, queue)
	}
	return p.extend(ctx, queue, auto, b)
}

// extend renews automatic reasons that end soon although every source is still
// blocked: a resumed queue would only move another slotful of tasks to the retry set.
func (p *PauseController) extend(ctx context.Context, queue string, auto []admission.PauseReason, b Blocked) error {
	for _, r := range auto {
		if r.Until.IsZero() || time.Until(r.Until) > 3*pauseInterval || b.Wait <= p.slotWait {
			continue
		}
		next := p.reason(b)
		next.By = r.By
		if _, _, err := p.queues.AddReason(ctx, queue, next); err != nil {
			return err
		}
	}
	return nil
}

// resumeOwn is for a worker that does not lead: it resumes a paused queue if
// the gates would admit its own calls. That may be so for it alone, because it
// has another token than the one that AudD refused.
func (p *PauseController) resumeOwn(ctx context.Context, queue string) error {
	paused, err := p.queues.Paused(ctx, queue)
	if err != nil || !paused {
		return err
	}
	state, err := p.queues.PauseState(ctx, queue)
	if err != nil || len(automatic(state)) == 0 {
		return err
	}
	_, blocked, err := p.checkPaused(ctx, queue)
	if err != nil || blocked {
		return err
	}
	return p.resume(ctx, queue)
}

// checkPaused is check with the units of the task for which the queue was paused.
func (p *PauseController) checkPaused(ctx context.Context, queue string) (Blocked, bool, error) {
	units, err := p.rdb.HGet(ctx, pauseUnits, queue).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Blocked{}, false, fmt.Errorf("read the units of a paused queue: %w", err)
	}
	return p.check(ctx, queue, max(1, units))
}

// resume removes the automatic reasons.
func (p *PauseController) resume(ctx context.Context, queue string) error {
	_, changed, err := p.queues.RemoveReason(ctx, queue, admission.AutoReason+"*")
	if err == nil && changed {
		p.log.Info("queue resumed: a source takes calls again", "queue", queue)
	}
	return err
}

func automatic(s admission.PauseState) []admission.PauseReason {
	var out []admission.PauseReason
	for _, r := range s.Reasons {
		if strings.HasPrefix(r.Name, admission.AutoReason) {
			out = append(out, r)
		}
	}
	return out
}
