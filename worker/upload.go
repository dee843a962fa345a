package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/idempotency"
	"reprise/idempotency/redismark"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// uploads joins the upload ledger to the engine. The ledger alone says whether
// an upload may be sent; Redis only remembers the ledger's latest mark, so that
// a ledger restored from an old backup is noticed (spec R31).
type uploads struct {
	ledger *idempotency.Ledger
	rdb    redis.UniversalClient
	verify idempotency.Verify
}

// ledgerTimeout bounds one question to the ledger before an upload.
const ledgerTimeout = 6 * time.Second

// ledgerSays is the point read of an upload before it asks for a permit: what
// was sent is never sent again by itself.
func (w *Worker) ledgerSays(ctx context.Context, d *delivery) *answer {
	if d.payload.Path != tasks.Upload {
		return nil
	}
	now := w.now()
	var st idempotency.UploadStatus
	var refused error
	look := func() (err error) {
		st, refused, err = w.look(ctx, d, now)
		return err
	}
	if ans := w.patiently(ctx, d, "the upload ledger cannot be asked", look); ans != nil {
		return ans
	}
	var taken *idempotency.TakenError
	var slot *idempotency.SlotTakenError
	var busy *idempotency.SlotBusyError
	switch err := refused; {
	case err == nil:
		return nil
	case errors.As(err, &taken):
		return w.sentBefore(ctx, d, st)
	case errors.As(err, &slot):
		return w.endOf(ctx, d, nil, retrypolicy.Decision{
			Verdict: tasks.Archive, Outcome: tasks.InvalidRequest, Final: true,
			Reason: "invalid_request: " + slot.Error() + "; enqueue it with --replace to overwrite",
		})
	case errors.As(err, &busy):
		return w.without(d, tasks.Refused, busy.Until.Sub(now), busy.Error())
	default:
		return w.without(d, tasks.StoreDown, 0, "the upload ledger does not answer")
	}
}

// look asks the ledger where the upload stands and whether it may be sent. A
// send that nobody concluded in time becomes uncertain here; a raw task, whose
// slot nobody claimed when it was enqueued, claims it now.
func (w *Worker) look(ctx context.Context, d *delivery, now time.Time) (st idempotency.UploadStatus, refused, err error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	st, err = w.uploads.ledger.Status(ctx, d.payload.Key)
	if err == nil && st.State == idempotency.Sent && !now.Before(st.Until) {
		st, err = w.uploads.ledger.Expire(ctx, d.payload.Key, now)
	}
	if err != nil || st.Known {
		return st, st.MaySend(now), err
	}
	p := d.payload
	got, err := w.uploads.ledger.Claim(ctx, idempotency.Claim{
		Source: p.Params.Source, AudioID: *p.Params.AudioID, Key: p.Key, SHA256: p.Input.SHA256, By: "worker", At: now,
	})
	if err != nil {
		return st, nil, err
	}
	return st, got[0].Refused, nil
}

// sentBefore repeats what the ledger knows of an upload's send.
func (w *Worker) sentBefore(ctx context.Context, d *delivery, st idempotency.UploadStatus) *answer {
	s := st.Send
	outcome := s.Outcome
	if outcome == "" {
		outcome = tasks.Crash
	}
	switch st.State {
	case idempotency.Settled:
		return w.endOf(ctx, d, &s, retrypolicy.Decision{Verdict: tasks.Done, Outcome: tasks.Uploaded, Reason: "uploaded: " + s.Reason})
	case idempotency.Rejected:
		return w.endOf(ctx, d, &s, retrypolicy.Decision{Verdict: tasks.Archive, Outcome: outcome, Final: true, Reason: s.Reason})
	case idempotency.Uncertain:
		return w.endOf(ctx, d, &s, retrypolicy.Decision{Verdict: tasks.Hold, Outcome: outcome, Reason: uncertain(outcome, s.Reason)})
	default: // sent, and its answer may still come
		return w.without(d, tasks.Refused, st.Until.Sub(w.now()), "it was sent and has no answer yet")
	}
}

// uncertain is the reason of a held upload: it names the way on.
func uncertain(outcome tasks.Outcome, reason string) string {
	return fmt.Sprintf("%s: uncertain, it may have arrived and is not sent again by itself; see inspect uploads (%s)", outcome, reason)
}

// endOf settles a verdict without a call. It may follow from what the ledger
// knows of a send: then the send's row comes along, because its worker may have
// died before it wrote one, and it may be billed. A row that is there stays.
func (w *Worker) endOf(ctx context.Context, d *delivery, sent *idempotency.Send, decision retrypolicy.Decision) *answer {
	s := settling{decision: decision}
	if sent != nil {
		s.sent = w.sentRow(d, *sent, decision)
	}
	if ans := w.settle(ctx, d, s); ans != nil {
		return ans
	}
	if sent != nil {
		w.metrics.attempt(tasks.Upload, decision.Outcome)
	}
	return answerOf(decision)
}

// sentRow describes a send as far as the ledger knows it.
func (w *Worker) sentRow(d *delivery, s idempotency.Send, decision retrypolicy.Decision) *store.Call {
	charge := w.policy.Decide(tasks.Upload, retrypolicy.Classified{Outcome: decision.Outcome}, tasks.AttemptRecord{}, 0)
	row := &store.Call{
		AttemptID: s.AttemptID, Key: d.payload.Key, Generation: d.standing.Generation, Source: s.Source, Path: tasks.Upload,
		Outcome: decision.Outcome, Verdict: decision.Verdict, RequestID: s.RequestID, Phase: "unknown", UnitBasis: "estimated",
		PossiblyBilled: charge.PossiblyBilled, Reason: decision.Reason, At: s.SentAt,
	}
	if charge.UnitsKept {
		row.Units, _ = d.payload.Units(w.opts.LimitCountsChunks)
	}
	w.price(row)
	return row
}

// latch takes the one send of an upload, right before its first body byte. An
// error means that no call is made; the attempt then reports released, since
// a commit whose reply was lost may stand.
func (w *Worker) latch(ctx context.Context, d *delivery) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	remembered, err := redismark.Read(ctx, w.uploads.rdb)
	if err != nil {
		return fmt.Errorf("%w: %w", retrypolicy.ErrStoreDown, err)
	}
	d.latchTried = true
	got, err := w.uploads.ledger.Latch(ctx, idempotency.LatchRequest{
		Key: d.payload.Key, AttemptID: d.permit.AttemptID, Source: d.permit.Source, AudioID: *d.payload.Params.AudioID,
		SHA256: d.payload.Input.SHA256, Timeout: w.opts.timeoutOf(tasks.Upload), Verify: w.uploads.verify,
		Remembered: remembered, At: w.now(),
	})
	if err != nil {
		return w.latchFailed(err)
	}
	if err := redismark.Write(ctx, w.uploads.rdb, got.Mark); err != nil {
		return fmt.Errorf("%w: %w", retrypolicy.ErrStoreDown, err)
	}
	if err := got.Fresh(w.now()); err != nil {
		return fmt.Errorf("%w: %w", retrypolicy.ErrLeaseLost, err)
	}
	return nil
}

// latchFailed sorts the ledger's refusals: who lost the race looks again soon,
// a ledger that is behind or down closes uploads.
func (w *Worker) latchFailed(err error) error {
	var taken *idempotency.TakenError
	var slot *idempotency.SlotTakenError
	var busy *idempotency.SlotBusyError
	var behind *idempotency.BehindError
	switch {
	case errors.As(err, &taken), errors.As(err, &slot), errors.As(err, &busy):
		return fmt.Errorf("%w: %w", retrypolicy.ErrLeaseLost, err)
	case errors.As(err, &behind):
		w.warn.do("ledger", "uploads are closed until a person runs `inspect uploads adopt`", err)
	default:
		w.warn.do("ledger", "the upload ledger takes no latch; uploads wait", err)
	}
	return fmt.Errorf("%w: %w", retrypolicy.ErrStoreDown, err)
}

// conclusion is what the attempt reports to the ledger; nil when it never
// tried to latch.
func (d *delivery) conclusion(s settling, at time.Time) *idempotency.Conclusion {
	if !d.latchTried || s.decision.Latch == tasks.LatchUntouched {
		return nil
	}
	return &idempotency.Conclusion{
		Effect: s.decision.Latch, Outcome: s.decision.Outcome, Reason: s.decision.Reason,
		RequestID: s.reply.requestID(), At: at,
	}
}
