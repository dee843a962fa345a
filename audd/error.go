package audd

import (
	"fmt"
	"strings"
	"time"
)

// Phase is how far a call got. An unsent call is free, a sent call may be billed, and the response says what happened
// to an answered call.
type Phase string

// The closed set of phases.
const (
	PhaseUnsent   Phase = "unsent"   // no byte of the request body was sent
	PhaseSent     Phase = "sent"     // bytes of the body were sent, and no complete response was read
	PhaseAnswered Phase = "answered" // a complete response was read
)

// Kind is why a call failed.
type Kind string

// The closed set of kinds.
const (
	// KindTransport means that the network failed or the timeout passed.
	KindTransport Kind = "transport"
	// KindLocal means that the request could not be built: the audio is unreadable or has another size than announced,
	// or fields exclude each other.
	KindLocal Kind = "local"
	// KindHook means that BeforeBody returned an error. The phase is unsent.
	KindHook Kind = "hook"
	// KindCode means that AudD returned an error code. HTTPStatus is set, except for code 901 of a call without a token,
	// which is unsent.
	KindCode Kind = "code"
	// KindHTTP means a response other than 2xx without an AudD code. A redirect is one.
	KindHTTP Kind = "http"
	// KindBody means an unreadable 2xx response: not JSON, without status, an error without a code, too large, or
	// incomplete. The phase of an incomplete response is sent.
	KindBody Kind = "body"
)

// Error is the error of every failed call. Its text and the text of Err are valid UTF-8 without the token and without
// URL queries. Err wraps the cause (a hook's error, a *net.OpError) for errors.Is and errors.As. The cause keeps its
// own text, so log the *Error, not the cause.
type Error struct {
	Op         string        // "recognize", "enterprise", "upload" or "getStreams"
	Kind       Kind          // why the call failed
	Phase      Phase         // how far it got
	Code       int           // AudD's error code, 0 if there is none
	HTTPStatus int           // status of the response, 0 if there is none
	JSON       bool          // the response's body was JSON
	RetryAfter time.Duration // 0 if the response has none; at most 30 days
	RequestID  string        // X-Request-Id of the response, for AudD's support
	Message    string        // AudD's error_message without secrets, at most 300 bytes
	Branded    bool          // a block (19, 20, 31337) that contains a song
	Latency    time.Duration // from the start of the call to its end
	Err        error         // the cause, nil if the response is the cause
}

// Error returns one line with the operation, the failure, the phase and the request id.
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
		b.WriteString("unreadable response")
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
