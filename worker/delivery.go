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

// delivery is one run of the handler. One goroutine uses it.
type delivery struct {
	id, queue, group string
	typ              string
	raw              []byte
	payload          tasks.Payload // only its path is set before decode

	retried, maxRetry int       // asynq's retry counter and its limit
	deadline          time.Time // when asynq cancels the delivery; the handler returns earlier

	status     store.TaskStatus        // the last one read
	permit     *admission.Permit       // nil = not admitted
	latchTried bool                    // the ledger was asked for a latch
	refusedBy  []string                // sources that refused the account in this delivery
	refusal    *retrypolicy.Classified // the last such refusal

	waitCause string    // of the last wait in the slot (waits.go)
	waitSince time.Time // when the waits with this cause began
}

// newDelivery reads the task, and what asynq stores in its context.
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

// key is the task's key in the store. A task whose payload cannot be read has its asynq id instead.
func (d *delivery) key() string {
	if d.payload.Key == "" {
		return d.id
	}
	return d.payload.Key
}

func (d *delivery) isUpload() bool { return d.payload.Path == tasks.Upload }

// record returns the task's charges before this attempt. Without a permit it has only the generation.
func (d *delivery) record() tasks.AttemptRecord {
	if d.permit == nil {
		return tasks.AttemptRecord{Generation: d.status.Generation}
	}
	return d.permit.Record
}

// shownInput returns the file or URL for display. The URL has no query, because that may hold a signature.
func (d *delivery) shownInput() string {
	if d.payload.Input.Kind == tasks.URLInput {
		return tasks.RedactURL(d.payload.Input.URL)
	}
	return d.payload.Input.Path
}

// exclude drops the permit and leaves its source out of the rest of this delivery, because it refused the
// account. The refusal ends the task if no other source can make the call.
func (d *delivery) exclude(refusal retrypolicy.Classified) {
	refusal.Latency = 0 // charged to the task already
	d.refusedBy = append(d.refusedBy, d.permit.Source)
	d.refusal, d.permit = &refusal, nil
}

// decode reads the payload. It refuses a version that this worker does not know, an invalid payload, and asynq
// limits that could end the delivery too early. needs returns the shortest time that a delivery of a path must
// have.
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
	end := without(tasks.InvalidRequest, 0, low+", so asynq could end the task regardless of its verdict; enqueue it with cmd/enqueue or tasks.Payload.Task")
	end.replayable = true
	return end
}

// minMaxRetry is the lowest asynq MaxRetry that a delivery accepts. asynq archives a task once Retried ≥
// MaxRetry, also a snoozed one, and does not ask IsFailure before (asynq v0.26.0 processor.go:340). MaxRetry must
// therefore be above every budget; tasks.MaxRetry is.
const minMaxRetry = 1000

// lowLimit describes the asynq limit that is too low, "" if there is none.
func (d *delivery) lowLimit(now time.Time, needs time.Duration) string {
	switch {
	case d.maxRetry < minMaxRetry:
		return fmt.Sprintf("its asynq MaxRetry of %d is below %d", d.maxRetry, minMaxRetry)
	case !d.deadline.IsZero() && d.deadline.Sub(now) < needs:
		return fmt.Sprintf("its asynq Timeout or Deadlineleaves %s, but a delivery needs %s", d.deadline.Sub(now).Round(time.Second), needs)
	}
	return ""
}

// linkExpired ends a task whose signed URL has expired.
func (d *delivery) linkExpired(now time.Time) *ending {
	if !d.payload.Input.ExpiredAt(now) {
		return nil
	}
	return without(tasks.LinkExpired, 0, "the signed URL has expired; enqueue the task with a new one")
}
