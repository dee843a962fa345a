package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"reprise/audd"
	"reprise/idempotency"
	"reprise/internal/timer"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker/record"
	"reprise/worker/warn"
)

// settler stores the outcomes of attempts and reads which tasks have a verdict. Safe for concurrent use.
type settler struct {
	recorder *record.Recorder
	price    record.Price
	slot     *slot
	stopped  context.Context //nolint:containedctx // done: settlements that nothing takes are dropped
	unsaved  atomic.Int64    // settlements that nothing took so far; no call is made while there are any
	metrics  *metrics
	log      *slog.Logger
	warn     *warn.Limiter
}

var errUnsaved = errors.New("this worker has results that are not stored yet")

// settled ends the delivery if its task has a verdict already. It is the only function that checks this. Before
// admission it waits in the slot while the store is down; under the permit it ends the delivery instead. outbox
// adds the verdicts in the outbox: admission refuses their tasks, so only a delivery that may end before admission
// needs them.
func (s *settler) settled(ctx context.Context, d *delivery, outbox bool) *ending {
	const failure = "the store cannot be read"
	var found store.TaskStatus
	read := func(ctx context.Context) (err error) {
		if s.unsaved.Load() > 0 {
			return errUnsaved
		}
		found, err = s.recorder.Status(ctx, d.payload.Key, outbox)
		return err
	}
	if d.permit == nil {
		if end := s.slot.retry(ctx, d, failure, read); end != nil {
			return end
		}
	} else if err := read(ctx); err != nil {
		s.warn.Warn(ctx, failure, failure+"; tasks wait", err)
		return without(tasks.StoreDown, 0, failure)
	}
	if d.permit != nil && found.Generation != d.status.Generation { // its budgets start again
		return without(tasks.Interrupted, 0, "it was reopened while it waited")
	}
	d.status = found
	if !found.Finished {
		return nil
	}
	s.metrics.repeats.WithLabelValues(string(d.payload.Path)).Inc()
	s.log.Info("answered from the store: no call", "task_id", d.id, "queue", d.queue, "outcome", string(found.Outcome), "verdict", string(found.Verdict))
	return &ending{stored: &found}
}

// settle stores an attempt and, if it ends the task, the verdict and the result. It stores nothing for an ending
// without a call that does not end the task. It returns an error only if the worker was stopped before anything
// took the settlement.
func (s *settler) settle(ctx context.Context, d *delivery, end *ending, decision retrypolicy.Decision) error {
	if end.stored != nil || end.reply == nil && !ends(decision.Verdict) {
		return nil
	}
	e := s.entry(d, end, decision)
	if err := s.save(ctx, e); err != nil {
		return err
	}
	switch {
	case end.reply != nil:
		s.logAttempt(d, end.reply, decision)
		s.metrics.called(e.Settlement.Call)
	case end.send != nil:
		s.metrics.attempt(tasks.Upload, decision.Outcome)
	}
	return nil
}

// settleLost stores the call row of the lost attempt that admission reported.
func (s *settler) settleLost(ctx context.Context, d *delivery, decision retrypolicy.Decision) error {
	lost := d.permit.Lost
	a := record.Attempt{ID: lost.AttemptID, Source: lost.Source, Units: lost.Units, Started: lost.At(), Decision: decision}
	if !decision.PossiblyBilled {
		a.Class.Phase = audd.PhaseUnsent
	}
	st := s.settlement(d)
	st.Call = s.call(d, a)
	if err := s.save(ctx, record.Entry{Settlement: st}); err != nil {
		return err
	}
	s.metrics.attempt(d.payload.Path, tasks.Crash)
	return nil
}

func (s *settler) entry(d *delivery, end *ending, decision retrypolicy.Decision) record.Entry {
	st := s.settlement(d)
	st.Outcome, st.Verdict, st.Reason, st.Final = decision.Outcome, decision.Verdict, decision.Reason, decision.Final
	st.Finished = ends(decision.Verdict)
	if st.Verdict == tasks.Done {
		st.Result = json.RawMessage("null")
	}
	a := record.Attempt{Class: end.class, Decision: decision}
	switch r, send := end.reply, end.send; {
	case r != nil:
		a.ID, a.Source, a.Units = d.permit.AttemptID, d.permit.Source, d.permit.Units
		a.RequestID, a.Started, a.Latency = r.requestID(), r.started, r.took
		st.Call = s.call(d, a)
		if st.Finished && st.Verdict == tasks.Done && len(r.raw) > 0 {
			st.Result = r.raw
		}
	case send != nil: // its worker may have died before it stored the row
		a.ID, a.Source, a.RequestID, a.Started, a.Units = send.AttemptID, send.Source, send.RequestID, send.SentAt, 1
		st.Call = s.call(d, a)
	default:
		st.AttemptID = end.lost
	}
	return record.Entry{Settlement: st, Latch: conclusion(d, end, decision, st.At), Verified: verification(d, end, st.At)}
}

// settlement returns what every settlement of the delivery contains.
func (s *settler) settlement(d *delivery) store.Settlement {
	return store.Settlement{
		Key: d.key(), Generation: d.status.Generation, Path: d.payload.Path, Queue: d.queue, Payload: d.raw, At: time.Now(),
	}
}

func (s *settler) call(d *delivery, a record.Attempt) *store.Call {
	a.Key, a.Generation, a.Path = d.key(), d.status.Generation, d.payload.Path
	return s.price.Call(a)
}

// conclusion is the report of an upload's attempt to the ledger; nil if it did not try to latch.
func conclusion(d *delivery, end *ending, decision retrypolicy.Decision, at time.Time) *idempotency.Conclusion {
	if !d.latchTried || end.reply == nil || decision.Latch == tasks.LatchUntouched {
		return nil
	}
	return &idempotency.Conclusion{
		Effect: decision.Latch, Outcome: decision.Outcome, Reason: decision.Reason,
		RequestID: end.reply.requestID(), At: at,
	}
}

// verification is the result of a recognition for the upload that it verifies; nil if it verifies none or has no
// result.
func verification(d *delivery, end *ending, at time.Time) *idempotency.Verification {
	v := d.payload.Params.Verifies
	answered := end.class.Outcome == tasks.Match || end.class.Outcome == tasks.NoMatch
	if v == nil || end.reply == nil || !answered {
		return nil
	}
	return &idempotency.Verification{Key: v.Key, Generation: v.Generation, Hit: end.reply.audioID, RequestID: end.reply.requestID(), At: at}
}

// savePause is the wait between two tries to store a settlement.
const savePause = 500 * time.Millisecond

// save stores an entry in SQL or in the outbox. It tries until one of them takes it, because the call may be paid
// for. asynq's cancellation and a drain do not stop it, only the end of the worker does.
func (s *settler) save(ctx context.Context, e record.Entry) error {
	ctx = context.WithoutCancel(ctx)
	unsaved := false
	for {
		start := time.Now()
		err := s.recorder.Save(ctx, e)
		if err == nil {
			s.metrics.settleTime.Observe(time.Since(start).Seconds())
			return nil
		}
		if !unsaved {
			unsaved = true
			s.unsaved.Add(1)
			defer s.unsaved.Add(-1)
		}
		s.warn.Warn(ctx, "settle", "a settlement can be written neither to the store nor to the outbox; retrying", err)
		if timer.Wait(s.stopped, savePause) != nil {
			return errors.New("the worker was stopped before its settlement could be stored")
		}
	}
}

// logAttempt logs one line per call to AudD.
func (s *settler) logAttempt(d *delivery, r *reply, decision retrypolicy.Decision) {
	level := slog.LevelInfo
	if decision.Verdict != tasks.Done {
		level = slog.LevelWarn
	}
	s.log.LogAttrs(s.stopped, level, "attempt", slog.String("task_id", d.id), slog.String("queue", d.queue),
		slog.String("path", string(d.payload.Path)), slog.String("file", d.shownInput()), slog.Int("attempt", d.record().Counted+1),
		slog.String("source", d.permit.Source), slog.String("outcome", string(decision.Outcome)),
		slog.String("verdict", string(decision.Verdict)), slog.String("reason", decision.Reason),
		slog.Duration("latency", r.took), slog.Int64("epoch", d.permit.Epoch))
}
