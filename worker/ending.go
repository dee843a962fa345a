package worker

import (
	"encoding/json"
	"errors"
	"time"

	"reprise/audd"
	"reprise/idempotency"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// ending says how an attempt ends, or how a delivery ends that makes no attempt. A nil *ending means that the
// delivery goes on.
type ending struct {
	class      retrypolicy.Classified // the outcome that the policy decides about
	reply      *reply                 // of the call; nil = no call was made
	stored     *store.TaskStatus      // the verdict that the task has already; nil = none
	replayable bool                   // an archive is not final, whatever the policy says
	charged    bool                   // a crash whose charges are not in the permit's record
	send       *idempotency.Send      // the send of an upload from which the verdict follows; nil = none
	lost       string                 // id of the lost attempt from which the verdict is presumed; "" = none
}

// reply is the result of one call to AudD.
type reply struct {
	err     error
	meta    audd.Meta
	raw     json.RawMessage // AudD's result; nil = none
	audioID *int64          // of the song that was found; nil = none, or public music
	started time.Time
	took    time.Duration
}

// requestID returns AudD's id of the call, which AudD's support asks for.
func (r *reply) requestID() string {
	if failed, ok := errors.AsType[*audd.Error](r.err); ok {
		return failed.RequestID
	}
	return r.meta.RequestID
}

// without returns the ending of a delivery that makes no call. wait is the shortest time before the next
// delivery; the policy may choose a longer one.
func without(outcome tasks.Outcome, wait time.Duration, reason string) *ending {
	return &ending{class: retrypolicy.Classified{Outcome: outcome, RetryAfter: wait, Reason: string(outcome) + ": " + reason}}
}

// ends reports whether a verdict ends its task.
func ends(v tasks.Verdict) bool { return v == tasks.Done || v == tasks.Archive || v == tasks.Hold }
