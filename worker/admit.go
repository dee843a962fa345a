package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/admission"
	"reprise/audd"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// admit gets a permit for one call. A refusal of up to SlotWait is waited out
// in the slot (a filled pool is the natural backpressure: tasks stay pending,
// where the web UI shows them); a longer one goes back to the queue.
func (w *Worker) admit(ctx context.Context, d *delivery) *answer {
	units, bounded := d.payload.Units(w.opts.LimitCountsChunks)
	ask := asking{until: w.slotUntil(d), req: admission.Request{
		Key: d.payload.Key, Path: d.payload.Path, Group: d.group,
		Generation: d.standing.Generation, Units: units, UnitsBounded: bounded,
		Exclude: d.excluded, Pinned: d.payload.Params.Source,
	}}
	for {
		// An attempt id is good for one grant: admission settles one whose
		// answer it could not deliver.
		ask.req.AttemptID = newAttemptID()
		ask.at = time.Now()
		permit, err := w.gates.Acquire(ctx, ask.req)
		if err == nil {
			d.permit = permit
			w.shutLog.granted(permit, ask.at)
			return nil
		}
		if ans := w.heed(ctx, d, &ask, err); ans != nil {
			return ans
		}
	}
}

// slotUntil is how long a wait may hold the slot: SlotWait, but never so long
// that asynq's deadline could end the call that follows.
func (w *Worker) slotUntil(d *delivery) time.Time {
	until := w.now().Add(w.opts.SlotWait)
	if d.deadline.IsZero() {
		return until
	}
	latest := d.deadline.Add(-w.opts.timeoutOf(d.payload.Path) - settleMargin)
	if latest.Before(until) {
		return latest
	}
	return until
}

// asking is one wait for a permit.
type asking struct {
	req   admission.Request
	at    time.Time     // of the last question
	until time.Time     // the slot is held no longer
	down  time.Duration // back-off while admission cannot be asked
}

// heed waits until it makes sense to ask again, or answers.
func (w *Worker) heed(ctx context.Context, d *delivery, ask *asking, why error) *answer {
	var refusal *admission.Refusal
	var inFlight *admission.InFlight
	var missing *admission.MissingPeriods
	var wait time.Duration
	switch {
	case errors.As(why, &refusal):
		w.metrics.refusal(d.payload.Path, refusal.Gate)
		w.shutLog.refused(d.payload.Path, refusal, ask.at)
		if ans := w.hopeless(ctx, d, refusal); ans != nil {
			return ans
		}
		wait = refusal.RetryAfter
	case errors.As(why, &inFlight):
		wait = inFlight.Until.Sub(w.now())
		if wait > inFlightWait { // another delivery is on it: do not hold a slot for it
			return w.without(d, tasks.Refused, min(wait, inFlightSnooze), "in flight in another delivery")
		}
	case errors.Is(why, admission.ErrTaskEnded):
		if ans := w.settledOrWaiting(ctx, d); ans != nil {
			return ans
		}
		return w.without(d, tasks.Interrupted, 0, "its verdict moved while it was read; it is looked at again")
	case errors.As(why, &missing):
		return w.patiently(ctx, d, "unit budgets cannot be seeded", func() error { return w.seed(ctx, missing) })
	case w.isStopping():
		return w.without(d, tasks.Interrupted, 0, "the worker stopped before the call")
	default:
		w.warn.do("admission", "no call can be admitted; tasks wait", why)
		ask.down = min(max(2*ask.down, downMin), downMax)
		wait = ask.down
	}
	if !w.now().Add(wait).After(ask.until) {
		return w.waitTurn(ctx, d, waiting{req: ask.req, refusal: refusal, wait: wait, why: why})
	}
	switch {
	case refusal != nil:
		return w.refused(ctx, d, refusal)
	case inFlight != nil:
		return w.without(d, tasks.Refused, inFlightSnooze, "in flight in another delivery")
	}
	return w.without(d, tasks.StoreDown, 0, "admission is not available")
}

// A key in flight elsewhere is looked at again soon, and from the queue when
// the other permit has longer to live.
const (
	inFlightWait   = time.Second
	inFlightSnooze = 15 * time.Second
)

// A store or an admission that is down is asked again in the slot, with this
// back-off: the backlog stays pending, and is not drained into the retry set.
const (
	downMin = 250 * time.Millisecond
	downMax = 5 * time.Second
)

// patiently repeats what a store refuses, for as long as a slot waits; then the
// task is snoozed as store_down.
func (w *Worker) patiently(ctx context.Context, d *delivery, trouble string, try func() error) *answer {
	until := w.slotUntil(d)
	for wait := downMin; ; wait = min(2*wait, downMax) {
		err := try()
		if err == nil {
			return nil
		}
		w.warn.do(trouble, trouble+"; tasks wait", err)
		if w.now().Add(wait).After(until) {
			return w.without(d, tasks.StoreDown, 0, trouble)
		}
		if ans := w.waitTurn(ctx, d, waiting{wait: wait, why: errStoreDown}); ans != nil {
			return ans
		}
	}
}

var errStoreDown = errors.New("a store is down")

// waiting is one wait in a slot: for a gate when there is a refusal, else for
// a time.
type waiting struct {
	req     admission.Request
	refusal *admission.Refusal
	wait    time.Duration
	why     error
}

// waitTurn waits in the slot until it makes sense to ask again or the worker
// stops. Those that wait for the same gate take turns, first come first served.
func (w *Worker) waitTurn(ctx context.Context, d *delivery, wt waiting) *answer {
	done := w.waits.begin(d, wt.why)
	defer done()
	delivered := ctx
	ctx, cancel := context.WithTimeout(ctx, max(wt.wait, w.opts.SlotWait))
	defer cancel()
	defer context.AfterFunc(w.open, cancel)()
	var err error
	if wt.refusal != nil {
		err = w.gates.Wait(ctx, wt.req, wt.refusal)
	} else {
		timer := time.NewTimer(wt.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	switch {
	case delivered.Err() != nil:
		return w.without(d, tasks.Interrupted, 0, "the delivery was cancelled before the call")
	case err != nil && w.isStopping():
		return w.without(d, tasks.Interrupted, 0, "the worker stopped before the call")
	}
	return nil
}

// closedWait spreads the return of tasks whose queue was just closed: they go
// back to pending and wait there like the others, so that they are not late
// when the queue opens early.
const closedWait = 10 * time.Second

// haltedWait is how long a task bound to a source that is halted, or that this
// worker does not have, waits before it asks again: a person may resume the
// source at any moment, another worker may have it, and as its queue is not
// paused nothing would wake the task.
const haltedWait = 5 * time.Minute

// refused sends a task back to the queue: until its gate opens or, when no
// source is left for any task of the queue, for a moment while the queue
// closes. A task may be refused where others are not, because it is bound to a
// source: such a one waits by itself, and the queue stays open.
func (w *Worker) refused(ctx context.Context, d *delivery, r *admission.Refusal) *answer {
	wait := r.RetryAfter
	if wait > w.opts.SlotWait {
		if ans := w.shutOut(ctx, d); ans != nil {
			return ans
		}
		switch {
		case d.payload.Params.Source == "":
			wait = w.opts.SlotWait // a source opened meanwhile, or it cannot be told
		case r.Gate == admission.GateHalt || r.Gate == admission.GateNoCandidate:
			wait = min(wait, haltedWait)
		}
	}
	return w.without(d, tasks.Refused, wait, fmt.Sprintf("gate %s of source %s opens %s", r.Gate, r.Source, opening(r.Gate, r.RetryAfter)))
}

// opening says when a gate opens, for people.
func opening(gate admission.Gate, wait time.Duration) string {
	if gate == admission.GateHalt && wait >= admission.UntilResumed {
		return "when a person resumes it"
	}
	return "in " + wait.Round(time.Second).String()
}

// shutOut closes the queue, or leaves it to other workers, when every source
// is shut for it; else it answers nothing.
func (w *Worker) shutOut(ctx context.Context, d *delivery) *answer {
	units, _ := d.payload.Units(w.opts.LimitCountsChunks)
	s, shut, err := w.paths.ask(ctx, d.queue, units)
	if err != nil || !shut || s.wait <= w.opts.SlotWait {
		return nil //nolint:nilerr // what cannot be told closes nothing
	}
	wait := time.Duration(w.random() * float64(closedWait))
	if s.gate == admission.GateHalt && w.sitout.begin(ctx, d.queue) {
		return w.without(d, tasks.Refused, wait, "AudD refuses this worker's token; left for another worker")
	}
	if !w.paths.close(ctx, d.queue, units, s) {
		return nil
	}
	return w.without(d, tasks.Refused, wait, fmt.Sprintf("%s, %s", s.evidence(), opening(s.gate, s.wait)))
}

// hopeless ends a task that waiting does not help: no other source is left
// after an account refusal, the task has no bound that fits a unit budget, or
// the budget is used up and the settings say to fail at once.
func (w *Worker) hopeless(ctx context.Context, d *delivery, r *admission.Refusal) *answer {
	switch {
	case d.refusal != nil && r.AllBlocked && (r.Gate == admission.GateHalt || r.Gate == admission.GateNoCandidate):
		return w.giveUpAccount(ctx, d) // a throttle, a breaker or a budget of the others is worth waiting for
	case r.Permanent:
		return w.finish(ctx, d, retrypolicy.Classified{
			Outcome: tasks.Unknown, Reason: fmt.Sprintf("unknown: gate %s will never let it pass; give it --max-units within the budget", r.Gate),
		})
	case r.FailFast:
		return w.finish(ctx, d, retrypolicy.Classified{
			Outcome: tasks.Quota, Reason: fmt.Sprintf("quota: the budget of gate %s is used up and quota_full is fail_fast", r.Gate),
		})
	}
	return nil
}

func (w *Worker) isStopping() bool {
	return w.open.Err() != nil
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
	var dead *store.Call
	if lost := d.permit.Lost; lost != nil {
		sent, err := w.maySent(ctx, d, lost.AttemptID)
		if err != nil {
			w.giveBack(d, tasks.Interrupted)
			return w.without(d, tasks.StoreDown, 0, "the upload ledger cannot be read")
		}
		row := store.Call{
			AttemptID: lost.AttemptID, Key: d.payload.Key, Generation: d.standing.Generation, Source: lost.Source,
			Path: d.payload.Path, Outcome: tasks.Crash, Verdict: tasks.Retry, Phase: "unknown", Units: lost.Units,
			UnitBasis: "estimated", PossiblyBilled: sent, Reason: string(tasks.Crash) + ": its worker died during the call", At: lost.At,
		}
		if !sent {
			row.Phase, row.Units = "unsent", 0
		}
		w.price(&row)
		if ans := w.keep(ctx, d, entry{Settlement: w.settlementOf(d, &row)}); ans != nil {
			w.giveBack(d, tasks.Interrupted)
			return ans
		}
		w.metrics.attempt(d.payload.Path, tasks.Crash)
		dead = &row
	}
	c, over := w.exhausted(d)
	if !over {
		return nil
	}
	w.giveBack(d, tasks.Refused)
	// The dead worker may only be frozen: its answer, should it still come,
	// wins over what is presumed of its attempt here.
	decision := w.policy.Decide(d.payload.Path, c, d.record(), w.random())
	if ans := w.settle(ctx, d, settling{class: c, decision: decision, sent: dead}); ans != nil {
		return ans
	}
	return answerOf(decision)
}

// maySent reports whether a lost attempt may have sent anything. A recognition
// may; an upload only if it latched.
func (w *Worker) maySent(ctx context.Context, d *delivery, attempt string) (bool, error) {
	if d.payload.Path != tasks.Upload {
		return true, nil
	}
	_, latched, err := w.uploads.ledger.SendByAttempt(ctx, attempt)
	return latched, err
}

// exhausted asks the policy whether the task may make another call at all: a
// lost attempt may have used up a budget, or its own time may be over.
func (w *Worker) exhausted(d *delivery) (retrypolicy.Classified, bool) {
	record := d.record()
	if w.policy.GivenUp(record) {
		return retrypolicy.Classified{Outcome: tasks.Expired, Reason: string(tasks.Expired) + ": its own time is used up"}, true
	}
	c := retrypolicy.Classified{Outcome: tasks.Crash, Reason: string(tasks.Crash) + ": its worker died during the call"}
	if d.payload.Path == tasks.Upload { // one that was sent never gets here: ledgerSays
		c.Phase = audd.PhaseUnsent
	}
	over := d.permit.Lost != nil && w.policy.Decide(d.payload.Path, c, record, 0).Verdict == tasks.Archive
	return c, over
}

// giveBack returns a permit whose call was never made.
func (w *Worker) giveBack(d *delivery, outcome tasks.Outcome) {
	w.gates.release(d.permit, admission.CallReport{Outcome: outcome, Channel: tasks.ChannelNone})
}

// otherSource reports whether a source is left that did not refuse the account
// in this delivery.
func (w *Worker) otherSource(d *delivery) bool {
	return d.payload.Params.Source == "" && len(d.excluded)+1 < len(w.clients)
}
