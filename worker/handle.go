package worker

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"reprise/audd"
	"reprise/retrypolicy"
	"reprise/tasks"
)

// handle runs one delivery and returns the answer for asynq. Each step returns nil when the delivery goes on,
// else how it ends:
//
//	decode the payload → settled already? → sent before, in the upload ledger? → link expired? →
//	acquire a permit → settled meanwhile? → record a lost attempt → budgets left? → call and classify →
//	conclude: decide → settle → release
//
// The steps from acquire on are repeated when a source refuses the account and another one can take the call.
func (w *Worker) handle(ctx context.Context, d *delivery) (ans *answer) {
	defer func() {
		if p := recover(); p != nil {
			ans = w.panicked(ctx, d, p)
		}
	}()
	end := firstEnding(
		func() *ending { return d.decode(time.Now(), w.opts.deliveryTime) },
		func() *ending { return w.settler.settled(ctx, d, d.isUpload() || d.payload.Input.ExpiresAt != 0) },
		func() *ending { return w.uploads.check(ctx, d) },
		func() *ending { return d.linkExpired(time.Now()) },
	)
	for {
		if end == nil {
			end = firstEnding(
				func() *ending { return w.admitter.acquire(ctx, d) },
				func() *ending { return w.settler.settled(ctx, d, false) }, // by a delivery of the key that has ended since
				func() *ending { return w.recordLost(ctx, d) },
				func() *ending { return w.exhausted(d) },
				func() *ending { return w.caller.call(ctx, d) },
			)
		}
		ans, tryOther := w.conclude(ctx, d, end)
		if !tryOther {
			return ans
		}
		end = nil
	}
}

// firstEnding runs steps in their order and returns the first ending, nil if the delivery goes on.
func firstEnding(steps ...func() *ending) *ending {
	for _, step := range steps {
		if end := step(); end != nil {
			return end
		}
	}
	return nil
}

// conclude ends an attempt: decide → settle → release → answer. The settlement is stored before asynq gets the
// answer: an ack can be lost, and the next delivery then finds the stored verdict
// (docs/adr/0002-settle-before-ack.md). tryOther means that the source refused the account and that the delivery
// goes on with another source.
func (w *Worker) conclude(ctx context.Context, d *delivery, end *ending) (ans *answer, tryOther bool) {
	decision := w.decide(d, end)
	tryOther = end.reply != nil && decision.TryOther && w.caller.otherSource(d)
	if tryOther { // only the call is settled, not the task
		decision.Verdict, decision.Final = tasks.Retry, false
	}
	if err := w.settler.settle(ctx, d, end, decision); err != nil {
		// The permit is kept, so that the attempt stays charged and the next delivery records it as lost.
		return answerOf(w.decide(d, without(tasks.StoreDown, time.Second, err.Error()))), false
	}
	w.admitter.release(d, end, decision)
	if tryOther {
		d.exclude(end.class)
	}
	return answerOf(decision), tryOther
}

// decide returns the decision about an ending.
func (w *Worker) decide(d *delivery, end *ending) retrypolicy.Decision {
	if st := end.stored; st != nil {
		return retrypolicy.Decision{Verdict: st.Verdict, Outcome: st.Outcome, Reason: st.Reason}
	}
	record := d.record()
	if end.charged {
		record.Counted, record.PossiblyBilled = record.Counted+1, record.PossiblyBilled+1
	}
	decision := w.policy.Decide(d.payload.Path, end.class, record, random())
	decision.Final = decision.Final && !end.replayable
	return decision
}

// panicked returns the answer after a panic. An attempt with a permit is settled as a crash, because its call may
// have been made: an upload that was latched is held, a recognition is retried within its budgets.
func (w *Worker) panicked(ctx context.Context, d *delivery, p any) *answer {
	text := fmt.Sprintf("panic: %.200v", p)
	w.log.Error("panic while handling a task", "task_id", d.id, "queue", d.queue, "error", text, "stack", string(debug.Stack()))
	end := without(tasks.Crash, 0, text)
	if d.permit == nil { // nothing was sent; the wait grows with every panic
		return &answer{verdict: tasks.Retry, outcome: tasks.Crash, delay: w.policy.Backoff(d.retried+1, random()), reason: end.class.Reason}
	}
	end.reply, end.charged = &reply{started: time.Now()}, true
	if d.isUpload() && !d.latchTried {
		end.class.Phase = audd.PhaseUnsent
	}
	ans, _ := w.conclude(ctx, d, end)
	return ans
}

const lostReason = string(tasks.Crash) + ": its worker died during the call"

// recordLost stores the call row of an attempt of the task that was admitted and never settled, because its
// worker died; it does nothing if there is none. The charges of its admission stay, because the call may be
// billed.
func (w *Worker) recordLost(ctx context.Context, d *delivery) *ending {
	lost := d.permit.Lost
	if lost == nil {
		return nil
	}
	sent, err := w.uploads.maySent(ctx, d, lost.AttemptID)
	if err != nil {
		return without(tasks.StoreDown, 0, "the upload ledger cannot be read")
	}
	decision := retrypolicy.Decision{Outcome: tasks.Crash, Verdict: tasks.Retry, PossiblyBilled: sent, UnitsKept: sent, Reason: lostReason}
	if err := w.settler.settleLost(ctx, d, decision); err != nil {
		return without(tasks.StoreDown, 0, err.Error())
	}
	return nil
}

// exhausted ends a task that may make no other call: its give-up time is used up, or the charges of a lost
// attempt used up a budget.
func (w *Worker) exhausted(d *delivery) *ending {
	if w.policy.GivenUp(d.permit.Record) {
		return without(tasks.Expired, 0, "its give-up time is used up")
	}
	if d.permit.Lost == nil {
		return nil
	}
	end := &ending{class: retrypolicy.Classified{Outcome: tasks.Crash, Reason: lostReason}, lost: d.permit.Lost.AttemptID}
	if d.isUpload() { // uploads.check has ended the delivery of an upload that was sent
		end.class.Phase = audd.PhaseUnsent
	}
	if w.decide(d, end).Verdict != tasks.Archive {
		return nil
	}
	return end
}
