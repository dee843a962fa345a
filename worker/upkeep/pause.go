package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/internal/timer"
	"reprise/tasks"
	"reprise/worker/warn"
)

// pauseInterval is how often asynq's pause flags are compared with the reasons.
const pauseInterval = time.Second

// PauseController pauses a queue when every source is blocked for longer than a delivery waits in its slot, and
// resumes it when the gates would admit a call. The tasks stay pending, in their order. An operator's pause and an
// automatic one do not end each other (docs/adr/0007-blocked-sources-pause-the-queue.md). Safe for concurrent use.
type PauseController struct {
	Gates    *admission.Gates
	Queues   *queue.Client
	Redis    redis.UniversalClient
	Leader   *Leader
	SlotWait time.Duration // the longest wait of a delivery in its slot
	Log      *slog.Logger
	Warn     *warn.Limiter

	pauses sync.Map // queue → *lastPause
}

// lastPause is this worker's last pause of a queue. Its mutex is held while the queue is being paused.
type lastPause struct {
	mu sync.Mutex
	at time.Time
	ok bool
}

// Check reports whether every source is blocked for a call of the queue with so many units, for longer than a
// delivery waits in its slot. It returns false if that is unknown.
func (p *PauseController) Check(ctx context.Context, queue string, units int64) (Blocked, bool) {
	b, blocked, err := p.check(ctx, queue, units)
	return b, err == nil && blocked && b.Wait > p.SlotWait
}

// Pause pauses a queue until a source is available. If many deliveries are refused at the same moment, one of
// them pauses the queue and the others wait for that: a slot that is free earlier would take one more task. It
// returns false if the queue could not be paused.
func (p *PauseController) Pause(ctx context.Context, queue string, units int64, b Blocked) bool {
	found, _ := p.pauses.LoadOrStore(queue, &lastPause{})
	last := found.(*lastPause) //nolint:forcetypeassert // the map has no other type
	last.mu.Lock()
	defer last.mu.Unlock()
	if last.ok && time.Since(last.at) < pauseInterval {
		return true
	}
	err := p.pause(ctx, queue, units, b)
	last.ok, last.at = err == nil, time.Now()
	p.Warn.Warn(ctx, "pause", "a queue without an available source could not be paused", err)
	return last.ok
}

func (p *PauseController) pause(ctx context.Context, queue string, units int64, b Blocked) error {
	if err := p.Redis.HSet(ctx, pauseUnits, queue, units).Err(); err != nil {
		return fmt.Errorf("note the units of a paused queue: %w", err)
	}
	reason := p.reason(b)
	_, changed, err := p.Queues.AddReason(ctx, queue, reason)
	if err != nil || !changed {
		return err
	}
	level, msg := slog.LevelWarn, "queue paused: every source is blocked"
	if b.Rate { // a limit that an operator set
		level, msg = slog.LevelInfo, "queue paused: the rate is used up"
	}
	p.Log.Log(ctx, level, msg, "queue", queue, "gate", string(b.Gate), "until", reason.Until.UTC())
	return nil
}

func (p *PauseController) reason(b Blocked) admission.PauseReason {
	return admission.PauseReason{
		Name: admission.AutoReason + string(b.Gate), Until: time.Now().Add(b.Wait), By: fmt.Sprintf("worker-%.8s", p.Leader.id), Evidence: b.Evidence(),
	}
}

// Run reconciles the queues every second until ctx ends.
func (p *PauseController) Run(ctx context.Context) {
	timer.Every(ctx, pauseInterval, func(ctx context.Context) {
		names, err := p.Queues.Names(ctx)
		if err != nil {
			return // deliveries report that Redis is down
		}
		for _, name := range names {
			if p.Leader.Leads() {
				err = p.reconcile(ctx, name)
			} else {
				err = p.resumeOwn(ctx, name)
			}
			p.Warn.Warn(ctx, "pause", "the pause reasons of a queue could not be reconciled", err)
		}
	})
}

// reconcile makes asynq's flag agree with the reasons, and the automatic reasons with the gates.
func (p *PauseController) reconcile(ctx context.Context, name string) error {
	state, action, err := p.Queues.Reconcile(ctx, name)
	if err != nil {
		return err
	}
	switch action {
	case queue.ActionAdopt:
		p.Log.Info("the queue was paused outside Reprise; this counts as a pause by an operator", "queue", name)
	case queue.ActionDrop:
		p.Log.Info("the queue was resumed outside Reprise", "queue", name)
	case queue.ActionNone, queue.ActionPause, queue.ActionUnpause: // its own
	}
	auto := automatic(state)
	if len(auto) == 0 {
		return nil
	}
	b, blocked, err := p.checkPaused(ctx, name)
	if err != nil {
		return err
	}
	if !blocked {
		return p.resume(ctx, name)
	}
	return p.extend(ctx, name, auto, b)
}

// extend renews automatic reasons that end soon while every source is still blocked. A queue that resumes too
// early would only move one more task per slot to the retry set.
func (p *PauseController) extend(ctx context.Context, queue string, auto []admission.PauseReason, b Blocked) error {
	for _, r := range auto {
		if r.Until.IsZero() || time.Until(r.Until) > 3*pauseInterval || b.Wait <= p.SlotWait {
			continue
		}
		next := p.reason(b)
		next.By = r.By
		if _, _, err := p.Queues.AddReason(ctx, queue, next); err != nil {
			return err
		}
	}
	return nil
}

// resumeOwn resumes a paused queue if the gates would admit the calls of this worker, which does not lead. They
// may do so for no other worker, because AudD refused another token.
func (p *PauseController) resumeOwn(ctx context.Context, queue string) error {
	paused, err := p.Queues.Paused(ctx, queue)
	if err != nil || !paused {
		return err
	}
	state, err := p.Queues.PauseState(ctx, queue)
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
	units, err := p.Redis.HGet(ctx, pauseUnits, queue).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Blocked{}, false, fmt.Errorf("read the units of a paused queue: %w", err)
	}
	return p.check(ctx, queue, max(1, units))
}

// resume removes the automatic reasons.
func (p *PauseController) resume(ctx context.Context, queue string) error {
	_, changed, err := p.Queues.RemoveReason(ctx, queue, admission.AutoReason+"*")
	if err == nil && changed {
		p.Log.Info("queue resumed: a source takes calls again", "queue", queue)
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

// Blocked says which gate blocks the source that is available first, and how long.
type Blocked struct {
	Gate   admission.Gate // of the source that is available first
	Source string         // empty when no source serves the queue at all
	Wait   time.Duration  // until it may be available
	Rate   bool           // only the rates block, until they allow another call
}

const (
	// noSourceWait is for how long a queue is paused that no source serves.
	noSourceWait = time.Hour
	// rateWaitMin is the shortest wait for a rate for which a queue is paused or stays paused. A queue is paused
	// when the wait is longer than a slot waits, and resumed at half of that, so that a slow rate does not pause
	// and resume it all the time.
	rateWaitMin = 5 * time.Second
)

// Evidence returns the reason for display.
func (b Blocked) Evidence() string {
	switch {
	case b.Source == "":
		return "no source may serve this queue"
	case b.Rate:
		return fmt.Sprintf("the rate of every source is used up; gate %[2]s of source %[1]s is the first to admit a call", b.Source, b.Gate)
	}
	return fmt.Sprintf("every source is blocked; gate %[2]s of source %[1]s is the first to open", b.Source, b.Gate)
}

// check asks the gates whether they would admit a call of so many units for a task of the queue that is pinned to
// no source. blocked is false if at least one source would admit it soon.
func (p *PauseController) check(ctx context.Context, queue string, units int64) (b Blocked, blocked bool, err error) {
	path, group, err := tasks.SplitQueue(queue)
	if err != nil {
		return b, false, err
	}
	sources, err := p.Gates.Check(ctx, path, group, units)
	if err != nil {
		return b, false, err
	}
	if len(sources) == 0 {
		return Blocked{Gate: admission.GateNoCandidate, Wait: noSourceWait}, true, nil
	}
	first := slices.MinFunc(sources, func(a, b admission.SourceCheck) int { return cmp.Compare(a.Wait, b.Wait) })
	_, _, closed := admission.AllBlocked(sources)
	b = Blocked{Gate: first.Gate, Source: first.Source, Wait: first.Wait, Rate: !closed}
	return b, closed || first.Wait > max(p.SlotWait/2, rateWaitMin), nil
}
