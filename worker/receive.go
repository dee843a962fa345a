package worker

import (
	"context"
	"errors"
	"time"

	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// newerDelay is the wait before a task of a newer version is looked at again:
// long enough not to spin while a rolling update finishes.
const newerDelay = 30 * time.Second

// receive decodes the task and checks what can be decided without asking
// anyone: unknown versions, unreadable payloads, links past their expiry, and
// deadlines under which asynq would give up first.
func (w *Worker) receive(ctx context.Context, d *delivery) *answer {
	payload, err := tasks.Decode(d.typ, d.raw)
	switch {
	case errors.Is(err, tasks.ErrNewerPayload):
		return snooze(tasks.NewerPayload, newerDelay, err.Error())
	case err != nil:
		return w.finish(ctx, d, retrypolicy.Classified{
			Outcome: tasks.InvalidRequest,
			Reason:  string(tasks.InvalidRequest) + ": " + err.Error(),
		})
	}
	d.payload = payload
	if d.tooShort(w.now(), w.opts.slotWait()) {
		d.frail = true
		return snooze(tasks.Interrupted, 0, "its asynq timeout leaves no room for a call; it is queued again with a longer one")
	}
	return nil
}

// tooShort reports whether asynq would give up on the task before a full wait
// and call are over.
func (d *delivery) tooShort(now time.Time, wait time.Duration) bool {
	return !d.deadline.IsZero() && d.deadline.Sub(now) < d.payload.Path.CallTimeout()+wait+settleMargin
}

// settled answers a task that has its verdict already, without a call: the
// point read of every delivery. What waits in the outbox counts as settled.
func (w *Worker) settled(ctx context.Context, d *delivery) *answer {
	standing, err := w.records.Standing(ctx, d.payload.Key)
	if err != nil {
		w.warn.do("store", "the store cannot be read; tasks wait", err)
		return snooze(tasks.StoreDown, w.storeDelay(), "the store cannot be read")
	}
	d.standing = standing
	if !standing.Finished {
		kept, found, err := w.outbox.finished(ctx, d.payload.Key, standing.Generation)
		if err != nil {
			return snooze(tasks.StoreDown, w.storeDelay(), "the outbox cannot be read")
		}
		if found {
			d.standing = standingOf(kept)
		}
	}
	if d.standing.Finished {
		w.metrics.repeated(d.payload.Path)
		return &answer{verdict: d.standing.Verdict, outcome: d.standing.Outcome, reason: d.standing.Reason}
	}
	if d.payload.Input.ExpiredAt(w.now()) {
		return w.finish(ctx, d, retrypolicy.Classified{
			Outcome: tasks.LinkExpired,
			Reason:  string(tasks.LinkExpired) + ": the signed URL's expiry has passed; enqueue it with a fresh one",
		})
	}
	return nil
}

// finish settles a task that gets its verdict without a call.
func (w *Worker) finish(ctx context.Context, d *delivery, c retrypolicy.Classified) *answer {
	decision := w.policy.Decide(d.payload.Path, c, d.record(), w.random())
	if ans := w.settle(ctx, d, settling{class: c, decision: decision}); ans != nil {
		return ans
	}
	return answerOf(decision)
}

func standingOf(s store.Settlement) store.Standing {
	return store.Standing{
		Known: true, Generation: s.Generation, Finished: s.Finished, Verdict: s.Verdict, Outcome: s.Outcome,
		Reason: s.Reason, Final: s.Final, Result: s.Result, Path: s.Path, Queue: s.Queue, FinishedAt: s.At,
	}
}

// storeDelay is the wait before a task that met a store or admission outage
// comes back: 5 s with additive jitter, so that a fleet does not return at once.
func (w *Worker) storeDelay() time.Duration {
	return 5*time.Second + time.Duration(w.random()*float64(5*time.Second))
}
