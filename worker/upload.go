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

// uploads asks the upload ledger on behalf of deliveries. The ledger alone decides whether an upload may be sent.
// Safe for concurrent use.
type uploads struct {
	ledger  *idempotency.Ledger   // nil when the worker takes no uploads
	rdb     redis.UniversalClient // of the ledger's latest mark
	verify  idempotency.Verify
	timeout time.Duration // of the call
	slot    *slot
	warn    *warn.Limiter
}

// ledgerTimeout bounds each request to the ledger.
const ledgerTimeout = 6 * time.Second

// check asks the ledger, before admission, whether an upload may be sent, and whether a recognition still has an
// uncertain upload to verify.
func (u *uploads) check(ctx context.Context, d *delivery) *ending {
	v := d.payload.Params.Verifies
	if !d.isUpload() && (v == nil || u.ledger == nil) {
		return nil
	}
	now := time.Now()
	var st idempotency.UploadStatus
	var refused error
	read := func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
		defer cancel()
		if v != nil {
			st, err = u.ledger.Status(ctx, v.Key)
		} else {
			st, refused, err = u.look(ctx, d, now)
		}
		return err
	}
	if end := u.slot.retry(ctx, d, "the upload ledger cannot be read", read); end != nil {
		return end
	}
	if v != nil {
		if st.State == idempotency.Uncertain && st.Generation == v.Generation {
			return nil
		}
		return without(tasks.InvalidRequest, 0, fmt.Sprintf("the upload %s is no longer uncertain, so there is nothing to verify", v.Key))
	}
	return refusedSend(st, refused, now)
}

// look reads an upload's status and whether it may be sent. It makes a send without a report in time uncertain. A
// task that was enqueued by hand has no slot yet, so look claims one.
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

// refusedSend ends a delivery whose upload may not be sent; it returns nil if it may.
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
		return without(tasks.InvalidRequest, 0, slot.Error()+"; to overwrite it, enqueue the upload with --replace")
	case errors.As(refused, &busy):
		return without(tasks.Refused, busy.Until.Sub(now), busy.Error())
	}
	return without(tasks.StoreDown, 0, "the upload ledger does not respond")
}

// sentBefore ends a delivery as the ledger says about the send that was made before.
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
		end = without(outcome, 0, fmt.Sprintf("uncertain: the upload may have arrived and is not sent again automatically; see inspect uploads (%s)", s.Reason))
	default: // sent, and its attempt may still report
		return without(tasks.Refused, st.Until.Sub(now), "the upload was sent and has no result yet")
	}
	end.send = &s
	return end
}

// maySent reports whether a lost attempt may have sent its call. A recognition may have; an upload only if it was
// latched.
func (u *uploads) maySent(ctx context.Context, d *delivery, attempt string) (bool, error) {
	if !d.isUpload() {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	_, latched, err := u.ledger.SendByAttempt(ctx, attempt)
	return latched, err
}

// latch takes the one send of an upload, right before its first body byte. After an error no call is made, and
// the attempt reports released, because the latch may stand although its reply was lost.
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

// latchFailed classifies an error of the ledger: an attempt that lost the race is retried soon; a ledger that is
// behind or down blocks uploads.
func (u *uploads) latchFailed(ctx context.Context, err error) error {
	var taken *idempotency.TakenError
	var slot *idempotency.SlotTakenError
	var busy *idempotency.SlotBusyError
	if errors.As(err, &taken) || errors.As(err, &slot) || errors.As(err, &busy) {
		return fmt.Errorf("%w: %w", retrypolicy.ErrLeaseLost, err)
	}
	if _, behind := errors.AsType[*idempotency.BehindError](err); behind {
		u.warn.Warn(ctx, "ledger", "uploads are blocked; run `inspect uploads adopt`", err)
	} else {
		u.warn.Warn(ctx, "ledger", "the upload ledger cannot be written; uploads wait", err)
	}
	return fmt.Errorf("%w: %w", retrypolicy.ErrStoreDown, err)
}
