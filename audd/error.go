package audd

import (
	"fmt"
	"strings"
	"time"
)

// Phase says how far a call got. It is about money: unsent is free, sent may
// have been billed, answered is judged by the answer.
type Phase string

// The phases of a call.
const (
	// PhaseUnsent: no byte of the request body left this process.
	PhaseUnsent Phase = "unsent"
	// PhaseSent: body bytes left, and no complete answer came back.
	PhaseSent Phase = "sent"
	// PhaseAnswered: a complete answer was read.
	PhaseAnswered Phase = "answered"
)

// Kind says why a call failed.
type Kind string

// The kinds of failure.
const (
	// KindTransport: the network failed, or time ran out; Phase says how far the call got.
	KindTransport Kind = "transport"
	// KindLocal: the request could not be made here: audio that cannot be opened
	// or read or has another size than announced, or fields that exclude each other.
	KindLocal Kind = "local"
	// KindHook: BeforeBody returned an error, which errors.Is and errors.As find. Always unsent.
	KindHook Kind = "hook"
	// KindCode: AudD answered with an error code. HTTPStatus is set too, except
	// for the code 901 this package gives to a call without a token (unsent).
	KindCode Kind = "code"
	// KindHTTP: an answer other than 2xx, without an AudD code. Redirects are never followed and land here.
	KindHTTP Kind = "http"
	// KindBody: a 2xx answer that cannot be read: not JSON, no status, an error
	// without a code, cut in the middle (then Phase is sent) or too large.
	KindBody Kind = "body"
)

// Error is the error of every failed call. Its text, and the text of Err, is
// valid UTF-8 and free of the token and of URL queries. Below Err lies the
// cause itself (a hook's error, a *net.OpError), for errors.Is and errors.As;
// a caller's own error keeps its own text there, so log the *Error, not its causes.
type Error struct {
	Op         string        // "recognize", "enterprise", "upload" or "getStreams"
	Kind       Kind          // why the call failed
	Phase      Phase         // how far it got
	Code       int           // AudD's error code, 0 if there is none
	HTTPStatus int           // status of the answer, 0 if there is none
	JSON       bool          // the answer's body was JSON
	RetryAfter time.Duration // how long the answer asks to wait, 0 if it does not; at most 30 days
	RequestID  string        // X-Request-Id of the answer, for AudD's support
	Message    string        // AudD's error_message without its echo of the request, at most 300 bytes
	Branded    bool          // a block (19, 20, 31337) that came dressed up as a song
	Latency    time.Duration // from the start of the call to its end
	Err        error         // the cause, if it was not AudD's answer
}

// Error is one line: operation, what went wrong, phase, request id.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("audd: ")
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	switch e.Kind {
	case KindCode:
		fmt.Fprintf(&b, "AudD code %d", e.Code)
	case KindHTTP:
		fmt.Fprintf(&b, "HTTP status %d without an AudD code", e.HTTPStatus)
	case KindBody:
		b.WriteString("unreadable answer")
	case KindHook:
		b.WriteString("stopped before the body")
	case KindLocal:
		b.WriteString("cannot build the request")
	default:
		b.WriteString("network failure")
	}
	if e.HTTPStatus != 0 && e.Kind != KindHTTP && e.HTTPStatus != 200 {
		fmt.Fprintf(&b, " (HTTP status %d)", e.HTTPStatus)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	b.WriteString(" [" + string(e.Phase))
	if e.RequestID != "" {
		b.WriteString(", request " + e.RequestID)
	}
	b.WriteString("]")
	return b.String()
}

// Unwrap is the cause, nil if AudD's answer is the cause.
func (e *Error) Unwrap() error { return e.Err }
