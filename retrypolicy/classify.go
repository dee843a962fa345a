package retrypolicy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"reprise/audd"
	"reprise/tasks"
)

// Classify returns the outcome of an attempt. Every error has one, also nil pointers and errors of other
// packages. A call whose progress is unknown counts as sent, because it may be billed.
func Classify(a CallResult) (c Classified) {
	defer func() {
		// Error, Is, As and Unwrap of other packages may panic, mostly for nil pointers.
		if recover() != nil {
			c = Classified{Outcome: tasks.Ambiguous, Phase: audd.PhaseSent, Reason: reason(tasks.Ambiguous, "an error that cannot be read")}
		}
	}()
	if a.Err == nil {
		return success(a)
	}
	if call, ok := errors.AsType[*audd.Error](a.Err); ok {
		return ofCall(a, call)
	}
	outcome := ofOther(a.Err)
	c = Classified{Outcome: outcome, Phase: audd.PhaseUnsent, Reason: reason(outcome, text(a.Err))}
	if outcome == tasks.Ambiguous {
		c.Phase = audd.PhaseSent
	}
	return c
}

func success(a CallResult) Classified {
	c := Classified{Outcome: tasks.NoMatch, HTTPStatus: 200, Phase: audd.PhaseAnswered}
	switch {
	case a.Path == tasks.Upload:
		c.Outcome = tasks.Uploaded
	case a.Match:
		c.Outcome = tasks.Match
	}
	c.Reason = reason(c.Outcome, "")
	return c
}

// ofCall classifies an error of the AudD client.
func ofCall(a CallResult, e *audd.Error) Classified {
	c := Classified{
		RetryAfter: max(e.RetryAfter, 0), Code: e.Code, HTTPStatus: e.HTTPStatus,
		Phase: e.Phase, Latency: max(e.Latency, 0),
	}
	var detail string
	switch {
	case e.Kind == audd.KindHook:
		c.Outcome, c.Phase = ofHook(e.Err), audd.PhaseUnsent
		detail = "before the first byte: " + text(e.Err)
	case e.Kind == audd.KindLocal:
		c.Outcome, detail = ofLocal(e), text(e.Err)
	case e.Code != 0:
		c.Outcome = ofCode(e.Code, e.Message, a)
		c.Probeable = e.Code == codeCatchAll
		detail = fmt.Sprintf("AudD code %d", e.Code)
		if e.HTTPStatus != 0 && e.HTTPStatus != 200 {
			detail += fmt.Sprintf(" with HTTP %d", e.HTTPStatus)
		}
		detail = join(detail, e.Message)
	case e.HTTPStatus != 0:
		c.Outcome, c.Probeable = ofStatus(e.HTTPStatus, e.JSON)
		detail = join(fmt.Sprintf("HTTP %d", e.HTTPStatus), e.Message)
		if e.Kind != audd.KindHTTP {
			detail = join(detail, text(e.Err))
		}
	case e.Phase == audd.PhaseUnsent && errors.Is(e.Err, context.Canceled):
		c.Outcome, detail = tasks.Interrupted, text(e.Err)
	case e.Phase == audd.PhaseUnsent:
		c.Outcome, detail = tasks.UnavailableUnsent, text(e.Err)
	default:
		c.Outcome, detail = tasks.Ambiguous, "sent, but no complete response: "+text(e.Err)
	}
	c.Reason = reason(c.Outcome, detail)
	return c
}

// ofHook returns the outcome of an error of the BeforeBody hook, after which nothing was sent. Unknown errors
// come from Reprise's stores, never from AudD.
func ofHook(err error) tasks.Outcome {
	if o, known := ofSentinel(err); known {
		return o
	}
	return tasks.StoreDown
}

// ofLocal returns the outcome of audio that could not be read. A call that sent bytes may be billed, whatever
// failed later.
func ofLocal(e *audd.Error) tasks.Outcome {
	if e.Phase != audd.PhaseUnsent {
		return tasks.Ambiguous
	}
	if o, known := ofSentinel(e.Err); known {
		return o
	}
	return tasks.InputMissing
}

// ofOther returns the outcome of an error from outside the client. If it is known, no call was made.
func ofOther(err error) tasks.Outcome {
	if o, known := ofSentinel(err); known {
		return o
	}
	if errors.Is(err, context.DeadlineExceeded) {
		// This is no sentinel: a slow disk or ledger within a call is retried with a backoff, not every second.
		return tasks.Interrupted
	}
	return tasks.Ambiguous
}

// sentinels are the errors with an outcome of their own if nothing was sent.
var sentinels = []struct {
	err     error
	outcome tasks.Outcome
}{
	{ErrInputChanged, tasks.InputChanged},
	{ErrLeaseLost, tasks.Interrupted},
	{ErrStoreDown, tasks.StoreDown},
	{tasks.ErrNewerPayload, tasks.NewerPayload},
	{tasks.ErrMalformed, tasks.InvalidRequest},
	{fs.ErrNotExist, tasks.InputMissing},
	{context.Canceled, tasks.Interrupted},
}

func ofSentinel(err error) (tasks.Outcome, bool) {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.outcome, true
		}
	}
	return "", false
}
