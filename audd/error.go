package audd

import (
	"fmt"
	"strings"
	"time"
)

// Phase is how far a call got: an unsent call is free, a sent one may have been
// billed, and the answer tells about an answered one.
type Phase string

// The closed set of phases.
const (
	// PhaseUnsent: no byte of the request body left this process.
	PhaseUnsent Phase = "unsent"
	// PhaseSent: body bytes left, and no complete answer came back.
	PhaseSent Phase = "sent"
	// PhaseAnswered: a complete answer was read.
	PhaseAnswered Phase = "answered"
)

// Kind is why a call failed.
type Kind string

// The closed set of kinds.
const (
	// KindTransport: the network failed or the timeout passed.
	KindTransport Kind = "transport"
	// KindLocal: the request could not be built: the audio is unreadable or has
	// another size than announced, or fields exclude each other.
	KindLocal Kind = "local"
	// KindHook: BeforeBody returned an error. The phase is unsent.
	KindHook Kind = "hook"
	// KindCode: AudD answered with an error code. HTTPStatus is set, except for the
	// code 901 of a call without a token, which is unsent.
	KindCode Kind = "code"
	// KindHTTP: an answer other than 2xx without an AudD code, redirects included.
	KindHTTP Kind = "http"
	// KindBody: an unreadable 2xx answer: not JSON, without status, an error
	// without a code, incomplete (then the phase is sent) or too large.
	KindBody Kind = "body"
)

// Error is the error of every failed call. Its text and that of Err are valid
// UTF-8 without the token and without URL queries. Err wraps the cause (a hook's
// error, a *net.OpError) for errors.Is and errors.As. The cause keeps its own
// text, so log the *Error, not the cause.
type Error struct {
	Op         string        // "recognize", "enterprise", "upload" or "getStreams"
	Kind       Kind          // why the call failed
	Phase      Phase         // how far it got
	Code       int           // AudD's error code, 0 if there is none
	HTTPStatus int           // status of the answer, 0 if there is none
	JSON       bool          // the answer's body was JSON
	RetryAfter time.Duration // 0 if the answer has none; at most 30 days
	RequestID  string        // X-Request-Id of the answer, for AudD's support
	Message    string        // AudD's error_message without secrets, at most 300 bytes
	Branded    bool          // a block (19, 20, 31337) that carries a song
	Latency    time.Duration // from the start of the call to its end
	Err        error         // the cause, nil if it is AudD's answer
}

// Error returns one line: operation, failure, phase, request id.
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

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
