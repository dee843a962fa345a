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
	"reprise/tasks"
	"reprise/worker/warn"
)

// uploads connects deliveries to the upload ledger, which alone decides whether
// an upload may be sent. Safe for concurrent use.
type uploads struct {
	ledger  *idempotency.Ledger   // nil when the worker takes no uploads
	rdb     redis.UniversalClient // has the ledger's latest mark
	verify  idempotency.Verify
	timeout time.Duration // of the call
	slot    *slot
	warn    *warn.Limiter
}

// ledgerTimeout bounds one question to the ledger.
const ledgerTimeout = 6 * time.Second

// check asks the ledger, before admission, about uploads and the recognitions
// that verify them.
func (u *uploads) check(ctx context.Context, d *delivery) *ending {
	v := d.payload.Params.Verifies
	if !d.isUpload() && (v == nil || u.ledger == nil) {
		return nil
	}
	now := time.Now()
	var st idempotency.UploadStatus
	var refused error
	ask := func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
		defer cancel()
		if v != nil {
			st, err = u.ledger.Status(ctx, v.Key)
		} else {
			st, refused, err = u.look(ctx, d, now)
		}
		return err
	}
	if end := u.slot.retry(ctx, d, "the upload ledger cannot be read", ask); end != nil {
		return end
	}
	if v != nil {
		if st.State == idempotency.Uncertain && st.Generation == v.Generation {
			return nil
		}
		return without(tasks.InvalidRequest, 0, fmt.Sprintf("nothing to verify: the upload %s is not uncertain any more", v.Key))
	}
	return refusedSend(st, refused, now)
}

// look asks where the upload stands and whether it may be sent. A send without
// a conclusion in time becomes uncertain here. A task enqueued by hand, whose
// slot is not claimed yet, claims it.
func (u *uploads) look(ctx context.Context, d *delivery, now time.Time) (st idempotency.UploadStatus, refused, err error) {
	st, err = u.ledger.Status(ctx, d.payload.Key)
	if err == nil && st.State == idempotency.Sent && !now.Before(st.Until) {
		st, err = u.ledger.Expire(ctx, d.payload.Key, now)
	}
	if err != nil || st.Known {
		return st, st.MaySend(now), err
	}
	p := d.payload
	got, err := u.ledger.Claim(ctx, idempotency.Claim{
		Source: p.Params.Source, AudioID: *p.Params.AudioID, Key: p.Key, SHA256: p.Input.SHA256, By: "worker", At: now,
	})
	if err != nil {
		return st, nil, err
	}
	return st, got[0].Refused, nil
}

// refusedSend ends a delivery whose upload may not be sent; nil if it may.
func refusedSend(st idempotency.UploadStatus, refused error, now time.Time) *ending {
	var taken *idempotency.TakenError
	var slot *idempotency.SlotTakenError
	var busy *idempotency.SlotBusyError
	switch {
	case refused == nil:
		return nil
	case errors.As(refused, &taken):
		return sentBefore(st, now)
	case errors.As(refused, &slot):
		return without(tasks.InvalidRequest, 0, slot.Error()+"; enqueue it with --replace to overwrite")
	case errors.As(refused, &busy):
		return without(tasks.Refused, busy.Until.Sub(now), busy.Error())
	}
	return without(tasks.StoreDown, 0, "the upload ledger does not answer")
}

// sentBefore repeats what the ledger knows of the upload's send.
func sentBefore(st idempotency.UploadStatus, now time.Time) *ending {
	s := st.Send
	outcome := s.Outcome
	if outcome == "" {
		outcome = tasks.Crash
	}
	var end *ending
	switch st.State {
	case idempotency.Settled:
		end = without(tasks.Uploaded, 0, s.Reason)
	case idempotency.Rejected:
		end = &ending{class: retrypolicy.Classified{Outcome: outcome, Reason: s.Reason}}
	case idempotency.Uncertain:
		end = without(outcome, 0, fmt.Sprintf("uncertain, it may have arrived and is not sent again by itself; see inspect uploads (%s)", s.Reason))
	default: // sent, and its answer may still come
		return without(tasks.Refused, st.Until.Sub(now), "it was sent and has no answer yet")
	}
	end.send = &s
	return end
}

// maySent reports whether a lost attempt may have sent anything. A recognition
// may; an upload only if it latched.
func (u *uploads) maySent(ctx context.Context, d *delivery, attempt string) (bool, error) {
	if !d.isUpload() {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	_, latched, err := u.ledger.SendByAttempt(ctx, attempt)
	return latched, err
}

// latch takes the one send of an upload, right before its first body byte. An
// error means that no call is made; the attempt then reports released, since
// a commit whose reply was lost may stand.
func (u *uploads) latch(ctx context.Context, d *delivery) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	remembered, err := redismark.Read(ctx, u.rdb)
	if err != nil {
		return fmt.Errorf("%w: %w", retrypolicy.ErrStoreDown, err)
	}
	d.latchTried = true
	got, err := u.ledger.Latch(ctx, idempotency.LatchRequest{
		Key: d.payload.Key, AttemptID: d.permit.AttemptID, Source: d.permit.Source, AudioID: *d.payload.Params.AudioID,
		SHA256: d.payload.Input.SHA256, Timeout: u.timeout, Verify: u.verify, Remembered: remembered, At: time.Now(),
	})
	if err != nil {
		return u.latchFailed(ctx, err)
	}
	if err := redismark.Write(ctx, u.rdb, got.Mark); err != nil {
		return fmt.Errorf("%w: %w", retrypolicy.ErrStoreDown, err)
	}
	if err := got.Fresh(time.Now()); err != nil {
		return fmt.Errorf("%w: %w", retrypolicy.ErrLeaseLost, err)
	}
	return nil
}

// latchFailed maps the ledger's refusals: an attempt that lost the race is
// retried soon; a ledger that is behind or down blocks uploads.
func (u *uploads) latchFailed(ctx context.Context, err error) error {
	var taken *idempotency.TakenError
	var slot *idempotency.SlotTakenError
	var busy *idempotency.SlotBusyError
	var behind *idempotency.BehindError
	switch {
	case errors.As(err, &taken), errors.As(err, &slot), errors.As(err, &busy):
		return fmt.Errorf("%w: %w", retrypolicy.ErrLeaseLost, err)
	case errors.As(err, &behind):
		u.warn.Warn(ctx, "ledger", "uploads are blocked until an operator runs `inspect uploads adopt`", err)
	default:
		u.warn.Warn(ctx, "ledger", "the upload ledger takes no latch; uploads wait", err)
	}
	return fmt.Errorf("%w: %w", retrypolicy.ErrStoreDown, err)
}
