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

// ending is how an attempt ends, or a delivery before any attempt. nil means
// that the delivery goes on.
type ending struct {
	class      retrypolicy.Classified // what happened; the policy decides from it
	reply      *reply                 // of the call; nil = no call was made
	stored     *store.TaskStatus      // the task has this verdict already, which is repeated
	replayable bool                   // an archive is not final, whatever the policy says
	charged    bool                   // a crash: the record's charges of its admission are not in it yet
	send       *idempotency.Send      // the verdict follows from this send of an upload
	lost       string                 // the verdict is presumed from this lost attempt
}

// reply is the answer to one AudD call.
type reply struct {
	err     error
	meta    audd.Meta
	raw     json.RawMessage // AudD's result; nil = none
	audioID *int64          // of the song that was found; nil = none, or public music
	started time.Time
	took    time.Duration
}

// requestID is AudD's id of the call, for its support.
func (r *reply) requestID() string {
	if failed, ok := errors.AsType[*audd.Error](r.err); ok {
		return failed.RequestID
	}
	return r.meta.RequestID
}

// without ends a delivery before a call. wait is the least time until the next
// delivery; the policy's own may be longer.
func without(outcome tasks.Outcome, wait time.Duration, reason string) *ending {
	return &ending{class: retrypolicy.Classified{Outcome: outcome, RetryAfter: wait, Reason: string(outcome) + ": " + reason}}
}

// ends reports whether a verdict finishes its task.
func ends(v tasks.Verdict) bool { return v == tasks.Done || v == tasks.Archive || v == tasks.Hold }
