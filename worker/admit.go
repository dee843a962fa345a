package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/admission"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// admit gets a permit for one call. A refusal of up to SlotWait is waited out
// in the slot (a filled pool is the natural backpressure: tasks stay pending,
// where the web UI shows them); a longer one goes back to the queue.
func (w *Worker) admit(ctx context.Context, d *delivery) *answer {
	units, bounded := d.payload.Units(w.opts.LimitCountsChunks)
	req := admission.Request{
		Key: d.payload.Key, AttemptID: newAttemptID(), Path: d.payload.Path, Group: d.group,
		Generation: d.standing.Generation, Units: units, UnitsBounded: bounded,
		Exclude: d.excluded, Pinned: d.payload.Params.Source,
	}
	until := w.now().Add(w.opts.slotWait())
	for {
		permit, err := w.gates.Acquire(ctx, req)
		var refusal *admission.Refusal
		var inFlight *admission.InFlight
		var wait time.Duration
		switch {
		case err == nil:
			d.permit = permit
			return w.pace(ctx, d, permit)
		case errors.As(err, &refusal):
			w.metrics.refusal(d.payload.Path, refusal.Gate)
			if refusal.NoSource && d.refusal != nil {
				return w.giveUpAccount(ctx, d)
			}
			wait = refusal.RetryAfter
		case errors.As(err, &inFlight):
			wait = inFlight.Until.Sub(w.now())
			if wait > inFlightWait { // another delivery is on it: do not hold a slot for it
				return snooze(tasks.Refused, min(wait, inFlightSnooze), "in flight in another delivery")
			}
		default:
			w.warn.do("admission", "no call can be admitted; tasks wait", err)
			return snooze(tasks.StoreDown, w.storeDelay(), "admission is not available")
		}
		if w.now().Add(wait).After(until) {
			return w.refused(d, refusal)
		}
		if ans := w.waitFor(ctx, d, wait, err); ans != nil {
			return ans
		}
	}
}

// A key in flight elsewhere is looked at again soon, and from the queue when
// the other permit has longer to live.
const (
	inFlightWait   = time.Second
	inFlightSnooze = 15 * time.Second
)

// pace waits for the slot in time that a rate gate reserved with the permit.
func (w *Worker) pace(ctx context.Context, d *delivery, p *admission.Permit) *answer {
	if p.Wait <= 0 {
		return nil
	}
	if ans := w.waitFor(ctx, d, p.Wait, nil); ans != nil {
		w.giveBack(ctx, d, tasks.Interrupted)
		return ans
	}
	return nil
}

// waitFor waits in the slot until the time has passed or the worker stops.
func (w *Worker) waitFor(ctx context.Context, d *delivery, wait time.Duration, why error) *answer {
	done := w.waits.begin(d, why)
	defer done()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.stopping:
	case <-ctx.Done():
	}
	return snooze(tasks.Interrupted, time.Second, "the worker stopped before the call")
}

// refused sends a task back to the queue with the time its gate opens.
func (w *Worker) refused(d *delivery, r *admission.Refusal) *answer {
	if r == nil {
		return snooze(tasks.Refused, inFlightSnooze, "in flight in another delivery")
	}
	jitter := time.Duration(w.random() * float64(min(r.RetryAfter/4, time.Minute)))
	delay := min(r.RetryAfter+jitter, retrypolicy.MaxSnooze)
	return snooze(tasks.Refused, delay, fmt.Sprintf("gate %s of source %s opens in %s", r.Gate, r.Source, r.RetryAfter.Round(time.Second)))
}

// giveUpAccount settles what an account refusal decided, when no other source
// can take the task over.
func (w *Worker) giveUpAccount(ctx context.Context, d *delivery) *answer {
	decision := *d.refusal
	c := retrypolicy.Classified{Outcome: decision.Outcome, Reason: decision.Reason}
	if ans := w.settle(ctx, d, settling{class: c, decision: decision}); ans != nil {
		return ans
	}
	return answerOf(decision)
}

// mourn deals with an attempt of this task that was admitted and never
// settled: its worker died. The charges made at its admission stand; the call
// may be billed, and the row says so. A budget that is used up ends the task.
func (w *Worker) mourn(ctx context.Context, d *delivery) *answer {
	if lost := d.permit.Lost; lost != nil {
		row := store.Call{
			AttemptID: lost.AttemptID, Key: d.payload.Key, Generation: d.standing.Generation, Source: lost.Source,
			Path: d.payload.Path, Outcome: tasks.Crash, Verdict: tasks.Retry, Phase: "unknown", Units: lost.Units,
			UnitBasis: "estimated", PossiblyBilled: true, Reason: string(tasks.Crash) + ": its worker died during the call", At: lost.At,
		}
		w.price(&row)
		if ans := w.keep(ctx, d, w.settlementOf(d, &row)); ans != nil {
			w.giveBack(ctx, d, tasks.Interrupted)
			return ans
		}
		w.metrics.attempt(d.payload.Path, tasks.Crash)
	}
	c, over := w.policy.Exhausted(d.payload.Path, d.record())
	if !over {
		return nil
	}
	w.giveBack(ctx, d, tasks.Refused)
	return w.finish(ctx, d, c)
}

// giveBack returns a permit whose call was never made.
func (w *Worker) giveBack(ctx context.Context, d *delivery, outcome tasks.Outcome) {
	w.gates.Release(ctx, d.permit, admission.Settlement{Outcome: outcome, Channel: string(retrypolicy.ChannelNone)})
}

// otherSource reports whether a source is left that did not refuse the account
// in this delivery.
func (w *Worker) otherSource(d *delivery) bool {
	return d.payload.Params.Source == "" && len(d.excluded)+1 < len(w.clients)
}
