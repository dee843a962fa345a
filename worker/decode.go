package worker

import (
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// decode reads the payload and checks what needs no other system: versions,
// unreadable payloads, and asynq limits under which asynq would end the task.
// A delivery needs the time until asynq ends it.
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
