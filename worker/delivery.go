package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"reprise/admission"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// delivery is one run of the handler: what asynq handed over and its state so
// far. It lives on one goroutine.
type delivery struct {
	id, queue, group string
	typ              string
	raw              []byte
	payload          tasks.Payload // before decoding it has only its path

	retried, maxRetry int       // asynq's counter and limit
	deadline          time.Time // asynq's; the handler always returns before it

	status     store.TaskStatus        // as read last
	permit     *admission.Permit       // nil = not admitted
	latchTried bool                    // its upload asked the ledger for a latch
	refusedBy  []string                // sources that refused the account in this delivery
	refusal    *retrypolicy.Classified // the last such refusal

	waitCause string // of its last wait in the slot, and since when (waits.go)
	waitSince time.Time
}

// newDelivery reads what asynq says about a task in its context.
func newDelivery(ctx context.Context, t *asynq.Task) *delivery {
	d := &delivery{typ: t.Type(), raw: t.Payload()}
	d.id, _ = asynq.GetTaskID(ctx)
	d.queue, _ = asynq.GetQueueName(ctx)
	d.retried, _ = asynq.GetRetryCount(ctx)
	d.maxRetry, _ = asynq.GetMaxRetry(ctx)
	d.deadline, _ = ctx.Deadline()
	if path, group, err := tasks.SplitQueue(d.queue); err == nil {
		d.group, d.payload.Path = group, path
	}
	return d
}

// key names the task in the store. An unreadable payload has no key of its own.
func (d *delivery) key() string {
	if d.payload.Key == "" {
		return d.id
	}
	return d.payload.Key
}

func (d *delivery) isUpload() bool { return d.payload.Path == tasks.Upload }

// record is the state of the task's budgets before this attempt; empty while
// nothing is admitted.
func (d *delivery) record() tasks.AttemptRecord {
	if d.permit == nil {
		return tasks.AttemptRecord{Generation: d.status.Generation}
	}
	return d.permit.Record
}

// shownInput names the audio, without a URL's signature.
func (d *delivery) shownInput() string {
	if d.payload.Input.Kind == tasks.URLInput {
		return tasks.RedactURL(d.payload.Input.URL)
	}
	return d.payload.Input.Path
}

// exclude takes the permit's source out of this delivery after it refused the
// account. The refusal ends the task if no other source can take over.
func (d *delivery) exclude(refusal retrypolicy.Classified) {
	refusal.Latency = 0 // charged to the task already
	d.refusedBy = append(d.refusedBy, d.permit.Source)
	d.refusal, d.permit = &refusal, nil
}

// decode reads the payload and makes the local checks: a version that this worker
// knows, a valid payload, and limits of asynq that leave the delivery enough time.
// needs returns the least time for a delivery of a path.
func (d *delivery) decode(now time.Time, needs func(tasks.Path) time.Duration) *ending {
	payload, err := tasks.Decode(d.typ, d.raw)
	switch {
	case errors.Is(err, tasks.ErrNewerPayload):
		return without(tasks.NewerPayload, 0, err.Error())
	case err != nil:
		return without(tasks.InvalidRequest, 0, err.Error())
	}
	d.payload = payload
	low := d.lowLimit(now, needs(payload.Path))
	if low == "" {
		return nil
	}
	end := without(tasks.InvalidRequest, 0, low+", so asynq could end the task against its verdict; enqueue it with this module's producers")
	end.replayable = true
	return end
}

// minMaxRetry is the lowest asynq MaxRetry that a delivery accepts. asynq
// archives even a snoozed task once Retried ≥ MaxRetry, before it asks
// IsFailure (asynq v0.26.0 processor.go:340), so MaxRetry must be above every
// budget. This module's own producers set tasks.MaxRetry.
const minMaxRetry = 1000

// lowLimit names the asynq limit that is too low; "" if none is.
func (d *delivery) lowLimit(now time.Time, needs time.Duration) string {
	switch {
	case d.maxRetry < minMaxRetry:
		return fmt.Sprintf("its asynq MaxRetry of %d is below %d", d.maxRetry, minMaxRetry)
	case !d.deadline.IsZero() && d.deadline.Sub(now) < needs:
		return fmt.Sprintf("its asynq Timeout or Deadline leaves %s, and a delivery needs %s", d.deadline.Sub(now).Round(time.Second), needs)
	}
	return ""
}

// linkExpired ends a task whose signed URL cannot work any more.
func (d *delivery) linkExpired(now time.Time) *ending {
	if !d.payload.Input.ExpiredAt(now) {
		return nil
	}
	return without(tasks.LinkExpired, 0, "the signed URL's expiry has passed; enqueue it with a fresh one")
}
