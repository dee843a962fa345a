package worker

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/hibiken/asynq"

	"reprise/audd"
	"reprise/retrypolicy"
	"reprise/tasks"
)

// handle runs one delivery. Its error is always an *answer (or nil), which is
// how asynq learns the verdict.
//
// The order is the safety argument: the settlement is stored before asynq
// hears of it, because an ack can be lost; a redelivery finds the stored
// verdict and repeats it without a call (docs/adr/0002-settle-before-ack.md).
func (w *Worker) handle(ctx context.Context, t *asynq.Task) (err error) {
	d := w.newDelivery(ctx, t)
	defer func() {
		if p := recover(); p != nil {
			err = w.crashed(ctx, d, fmt.Sprintf("panic: %.200v", p), debug.Stack())
		}
	}()

	if ans := w.receive(ctx, d); ans != nil {
		return w.reply(ctx, d, ans)
	}
	if ans := w.settled(ctx, d); ans != nil {
		return w.reply(ctx, d, ans)
	}
	if ans := w.ledgerSays(ctx, d); ans != nil {
		return w.reply(ctx, d, ans)
	}
	if ans := w.expired(ctx, d); ans != nil {
		return w.reply(ctx, d, ans)
	}
	for {
		if ans := w.admit(ctx, d); ans != nil {
			return w.reply(ctx, d, ans)
		}
		if ans := w.stillOpen(ctx, d); ans != nil {
			return w.reply(ctx, d, ans)
		}
		if ans := w.mourn(ctx, d); ans != nil {
			return w.reply(ctx, d, ans)
		}
		reply := w.call(ctx, d)
		class := retrypolicy.Classify(reply.attempt(d))
		decision := w.policy.Decide(d.payload.Path, class, d.record(), w.random())
		again := decision.TryOther && w.otherSource(d)
		if ans := w.settle(ctx, d, settling{reply: reply, class: class, decision: decision, again: again}); ans != nil {
			return w.reply(ctx, d, ans)
		}
		w.release(d, reply, class, decision, again)
		if again {
			d.exclude(decision)
			continue
		}
		return w.reply(ctx, d, answerOf(decision))
	}
}

// crashed turns a panic into an answer. With a permit the attempt is settled
// as a crash, because a call may have been made: an upload that latched is
// held, a recognition is tried again within its budgets.
func (w *Worker) crashed(ctx context.Context, d *delivery, reason string, stack []byte) error {
	w.log.Error("panic while handling a task", "task_id", d.id, "queue", d.queue, "error", reason, "stack", string(stack))
	c := retrypolicy.Classified{Outcome: tasks.Crash, Reason: string(tasks.Crash) + ": " + reason}
	if d.permit == nil { // nothing was sent; a poisoned task comes back ever more slowly
		return w.reply(ctx, d, &answer{
			verdict: tasks.Retry, outcome: tasks.Crash, delay: w.policy.Backoff(d.retried+1, w.random()), reason: c.Reason,
		})
	}
	if d.payload.Path == tasks.Upload && !d.latchTried {
		c.Phase = audd.PhaseUnsent
	}
	record := d.record()
	record.Counted, record.PossiblyBilled = record.Counted+1, record.PossiblyBilled+1 // charged when it was admitted
	decision := w.policy.Decide(d.payload.Path, c, record, w.random())
	r := reply{started: w.now()}
	if ans := w.settle(ctx, d, settling{reply: r, class: c, decision: decision}); ans != nil {
		return w.reply(ctx, d, ans)
	}
	w.release(d, r, c, decision, false)
	return w.reply(ctx, d, answerOf(decision))
}
