package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// receive decodes the task and checks what can be decided without asking
// anyone: unknown versions, unreadable payloads, links past their expiry, and
// deadlines under which asynq would give up first.
func (w *Worker) receive(ctx context.Context, d *delivery) *answer {
	payload, err := tasks.Decode(d.typ, d.raw)
	switch {
	case errors.Is(err, tasks.ErrNewerPayload):
		return w.without(d, tasks.NewerPayload, 0, err.Error())
	case err != nil:
		return w.finish(ctx, d, retrypolicy.Classified{
			Outcome: tasks.InvalidRequest,
			Reason:  string(tasks.InvalidRequest) + ": " + err.Error(),
		})
	}
	d.payload = payload
	if low := d.lowLimit(w.now(), w.opts.timeoutOf(payload.Path)+w.opts.SlotWait+settleMargin); low != "" {
		return w.endOf(ctx, d, nil, retrypolicy.Decision{
			Verdict: tasks.Archive, Outcome: tasks.InvalidRequest,
			Reason: string(tasks.InvalidRequest) + ": " + low + ", so asynq could end the task against its verdict; enqueue it with this module's producers",
		})
	}
	return nil
}

// minMaxRetry is the lowest asynq MaxRetry that a delivery accepts. asynq
// archives even a snoozed task once Retried ≥ MaxRetry, before it asks
// IsFailure (asynq v0.26.0 processor.go:340), so MaxRetry must be above every
// budget. This module's own producers set tasks.MaxRetry.
const minMaxRetry = 1000

// lowLimit names the asynq limit that is too low for a delivery that needs so
// much time: asynq would end the task, not the policy. "" if none is.
func (d *delivery) lowLimit(now time.Time, need time.Duration) string {
	switch {
	case d.maxRetry < minMaxRetry:
		return fmt.Sprintf("its asynq MaxRetry of %d is below %d", d.maxRetry, minMaxRetry)
	case !d.deadline.IsZero() && d.deadline.Sub(now) < need:
		return fmt.Sprintf("its asynq Timeout or Deadline leaves %s, and a delivery needs %s", d.deadline.Sub(now).Round(time.Second), need)
	}
	return ""
}

// settled answers a task that has its verdict already, without a call: the
// point read of every delivery. Whether a verdict waits in the outbox admission
// says instead of granting; only where a delivery may end without asking it, an
// upload or a link that expires, the outbox is read here.
func (w *Worker) settled(ctx context.Context, d *delivery) *answer {
	if d.payload.Path == tasks.Upload || d.payload.Input.ExpiresAt != 0 {
		return w.settledOrWaiting(ctx, d)
	}
	return w.pointRead(ctx, d, w.records.TaskStatus)
}

// settledOrWaiting is settled that also looks into the outbox.
func (w *Worker) settledOrWaiting(ctx context.Context, d *delivery) *answer {
	return w.pointRead(ctx, d, w.standing)
}

func (w *Worker) pointRead(ctx context.Context, d *delivery, standing func(context.Context, string) (store.TaskStatus, error)) *answer {
	read := func() (err error) {
		if w.unsaved.Load() > 0 {
			return errUnsaved
		}
		d.standing, err = standing(ctx, d.payload.Key)
		return err
	}
	if ans := w.patiently(ctx, d, "the store cannot be read", read); ans != nil {
		return ans
	}
	return w.repeat(d)
}

var errUnsaved = errors.New("results wait for a place to be kept")

// repeat answers with the verdict that is stored; nil when there is none.
func (w *Worker) repeat(d *delivery) *answer {
	if !d.standing.Finished {
		return nil
	}
	w.metrics.repeated(d.payload.Path)
	w.log.Info("answered from the store: no call", "task_id", d.id, "queue", d.queue, "outcome", string(d.standing.Outcome), "verdict", string(d.standing.Verdict))
	return &answer{verdict: d.standing.Verdict, outcome: d.standing.Outcome, reason: d.standing.Reason}
}

// expired archives a task whose link cannot work any more, without a call.
// Uploads are looked up in the ledger before: one may have been sent in time.
func (w *Worker) expired(ctx context.Context, d *delivery) *answer {
	if !d.payload.Input.ExpiredAt(w.now()) {
		return nil
	}
	return w.finish(ctx, d, retrypolicy.Classified{
		Outcome: tasks.LinkExpired,
		Reason:  string(tasks.LinkExpired) + ": the signed URL's expiry has passed; enqueue it with a fresh one",
	})
}

// stillOpen reads again where the task stands, now that its permit keeps every
// other delivery out: one that was in flight when it was read first (the same
// key in another group's queue, a worker that was frozen) has settled before it
// gave the permit back: in SQL, or in the outbox, and then no permit was given.
// Nor may a call be made while this worker holds results
// that neither SQL nor the outbox takes.
func (w *Worker) stillOpen(ctx context.Context, d *delivery) *answer {
	if w.unsaved.Load() > 0 {
		w.giveBack(d, tasks.Refused)
		return w.without(d, tasks.StoreDown, 0, "results wait for a place to be kept")
	}
	found, err := w.records.TaskStatus(ctx, d.payload.Key)
	if err != nil {
		w.warn.do("store", "the store cannot be read; tasks wait", err)
		w.giveBack(d, tasks.Refused)
		return w.without(d, tasks.StoreDown, 0, "the store cannot be read")
	}
	if found.Generation != d.standing.Generation { // re-opened meanwhile: its budgets begin anew
		w.giveBack(d, tasks.Refused)
		return w.without(d, tasks.Interrupted, 0, "it was opened again while it waited")
	}
	d.standing = found
	ans := w.repeat(d)
	if ans != nil {
		w.giveBack(d, tasks.Refused)
	}
	return ans
}

// standing is where a key stands in SQL or, while SQL is behind, in the outbox.
func (w *Worker) standing(ctx context.Context, key string) (store.TaskStatus, error) {
	found, err := w.records.TaskStatus(ctx, key)
	if err != nil || found.Finished {
		return found, err
	}
	kept, waits, err := w.outbox.ended(ctx, key, found.Generation)
	if err != nil || !waits {
		return found, err
	}
	return standingOf(kept), nil
}

// finish settles a task that gets its verdict without a call.
func (w *Worker) finish(ctx context.Context, d *delivery, c retrypolicy.Classified) *answer {
	decision := w.policy.Decide(d.payload.Path, c, d.record(), w.random())
	if ans := w.settle(ctx, d, settling{class: c, decision: decision}); ans != nil {
		return ans
	}
	return answerOf(decision)
}

func standingOf(s store.Settlement) store.TaskStatus {
	return store.TaskStatus{
		Known: true, Generation: s.Generation, Finished: s.Finished, Verdict: s.Verdict, Outcome: s.Outcome,
		Reason: s.Reason, Final: s.Final, Result: s.Result, Path: s.Path, Queue: s.Queue, FinishedAt: s.At,
	}
}
