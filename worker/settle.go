package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"reprise/admission"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// settling is what there is to store about an attempt.
type settling struct {
	reply    reply
	class    retrypolicy.Classified
	decision retrypolicy.Decision
	again    bool        // another source is tried next in this delivery: no verdict yet
	sent     *store.Call // without a call: the row of the earlier one the verdict is about
}

// settle stores the attempt and, when it ends the task, its verdict and
// result. It returns an answer only when nothing could be stored.
func (w *Worker) settle(ctx context.Context, d *delivery, s settling) *answer {
	if s.again { // a source refused the account; of the task nothing is decided
		s.decision.Verdict, s.decision.Final = tasks.Retry, false
	}
	row := w.callRow(d, s)
	kept := w.settlementOf(d, row)
	kept.Outcome, kept.Verdict, kept.Reason = s.decision.Outcome, s.decision.Verdict, s.decision.Reason
	kept.Final = s.decision.Final
	if row == nil {
		kept.Call = s.sent
	}
	kept.Finished = ends(s.decision.Verdict)
	if kept.Finished && kept.Verdict == tasks.Done {
		kept.Result = resultOf(s)
	}
	if ans := w.keep(ctx, d, entry{Settlement: kept, Latch: d.conclusion(s, kept.At)}); ans != nil {
		return ans
	}
	w.logAttempt(d, s)
	w.metrics.settled(d, s, row)
	return nil
}

func ends(v tasks.Verdict) bool { return v == tasks.Done || v == tasks.Archive || v == tasks.Hold }

// resultOf is what the task's reader gets: AudD's own result value, and a
// warning or outcome beside it where there is one.
func resultOf(s settling) json.RawMessage {
	if len(s.reply.raw) > 0 {
		return s.reply.raw
	}
	return json.RawMessage("null")
}

// settlementOf fills what every settlement of the delivery carries.
func (w *Worker) settlementOf(d *delivery, row *store.Call) store.Settlement {
	key := d.payload.Key
	if key == "" {
		key = d.id // an unreadable payload has no key of its own
	}
	return store.Settlement{
		Key: key, Generation: d.standing.Generation, Path: d.payload.Path, Queue: d.queue, Payload: d.raw,
		Call: row, At: w.now(),
	}
}

// callRow describes the call of an attempt; nil when none was made.
func (w *Worker) callRow(d *delivery, s settling) *store.Call {
	if s.reply.started.IsZero() || d.permit == nil {
		return nil
	}
	row := &store.Call{
		AttemptID: d.permit.AttemptID, Key: d.payload.Key, Generation: d.standing.Generation, Source: d.permit.Source,
		Path: d.payload.Path, Outcome: s.decision.Outcome, Verdict: s.decision.Verdict, Code: s.class.Code,
		HTTPStatus: s.class.HTTPStatus, Phase: string(s.class.Phase), Latency: s.reply.took,
		UnitBasis: "estimated", PossiblyBilled: s.decision.PossiblyBilled, Reason: s.decision.Reason, At: s.reply.started,
	}
	row.RequestID = s.reply.requestID()
	if s.reply.err == nil {
		row.HTTPStatus, row.Phase = s.reply.meta.HTTPStatus, string(s.reply.meta.Phase)
	}
	if s.decision.UnitsKept {
		row.Units, _ = d.payload.Units(w.opts.LimitCountsChunks)
		if row.Units == 0 {
			row.UnitBasis = "unavailable"
		}
	}
	w.price(row)
	return row
}

// price fills the cost where the price is known. Unknown stays nil, never 0.
func (w *Worker) price(row *store.Call) {
	if w.opts.PricePer1000 <= 0 || row.UnitBasis == "unavailable" {
		return
	}
	price := w.opts.PricePer1000 / 1000
	cost := price * float64(row.Units)
	row.Price, row.Cost = &price, &cost
}

// Bounds of keeping a settlement: one try of the store, then the outbox, then
// both again after a pause.
const (
	storeTimeout  = 6 * time.Second
	outboxTimeout = 5 * time.Second
	keepPause     = 500 * time.Millisecond
)

// keep stores a settlement in SQL, else in the Redis outbox, and tries both
// again until one takes it: the call may be paid for, so neither asynq's
// cancellation nor a drain ends the wait; only the worker's hard stop does.
func (w *Worker) keep(ctx context.Context, d *delivery, e entry) *answer {
	ctx = context.WithoutCancel(ctx)
	homeless := false
	for {
		start := w.now()
		err := w.keepOnce(ctx, e)
		if err == nil {
			w.metrics.settleTook(w.now().Sub(start))
			return nil
		}
		if !homeless {
			homeless = true
			w.unsaved.Add(1)
			defer w.unsaved.Add(-1)
		}
		w.warn.do("settle", "neither the store nor the outbox takes a settlement; trying on", err)
		timer := time.NewTimer(keepPause)
		select {
		case <-timer.C:
		case <-w.halted.Done():
			timer.Stop()
			return w.without(d, tasks.StoreDown, time.Second, "the worker was stopped with its settlement unsaved")
		}
	}
}

func (w *Worker) keepOnce(ctx context.Context, e entry) error {
	var storeErr error
	if w.outbox.storeUsable() {
		sctx, cancel := context.WithTimeout(ctx, storeTimeout)
		storeErr = w.outbox.write(sctx, e)
		cancel()
		if storeErr == nil {
			return nil
		}
		w.outbox.storeFailed()
		w.warn.do("store", "the store takes no settlement; the outbox does", storeErr)
	}
	octx, cancel := context.WithTimeout(ctx, outboxTimeout)
	defer cancel()
	if err := w.outbox.put(octx, e); err != nil {
		return errors.Join(storeErr, err)
	}
	return nil
}

// release reports the attempt to admission: charges corrected, units kept or
// refunded, breaker told, permit given back. It runs in the background: it may
// lag the ack, since a permit that is not given back lapses by itself.
func (w *Worker) release(d *delivery, r reply, c retrypolicy.Classified, dec retrypolicy.Decision, again bool) {
	units := int64(0)
	if dec.UnitsKept {
		units, _ = d.payload.Units(w.opts.LimitCountsChunks)
	}
	w.gates.release(d.permit, admission.CallReport{
		Outcome: dec.Outcome, Channel: dec.Channel, Halt: string(dec.Halt), Probeable: c.Probeable,
		RetryAfter: dec.BlockFor, Counted: dec.Counted, PossiblyBilled: dec.PossiblyBilled, UnitsUsed: units,
		Latency: r.took, Backoff: dec.Backoff, ClearRecord: !again && ends(dec.Verdict),
	})
}
