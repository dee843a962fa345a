package audd

import (
	"fmt"
	"strings"
	"time"
)

// Phase is how far a call got. An unsent call is free. A sent call may be billed. The response of an answered call
// says what happened.
type Phase string

// All phases.
const (
	PhaseUnsent   Phase = "unsent"   // no byte of the request body was sent
	PhaseSent     Phase = "sent"     // bytes of the body were sent, and no complete response was read
	PhaseAnswered Phase = "answered" // a complete response was read
)

// Kind is why a call failed.
type Kind string

// All kinds.
const (
	// KindTransport means that the network failed or the timeout passed.
	KindTransport Kind = "transport"
	// KindLocal means that the request could not be built. The audio is unreadable, its size differs from the announced
	// size, or two fields cannot be combined.
	KindLocal Kind = "local"
	// KindHook means that BeforeBody returned an error. The phase is unsent.
	KindHook Kind = "hook"
	// KindCode means that AudD returned an error code. HTTPStatus is set, except if the caller has no token. Such a call
	// fails with code 901 and is unsent.
	KindCode Kind = "code"
	// KindHTTP means a response with a status other than 2xx and without an AudD code, for example a redirect.
	KindHTTP Kind = "http"
	// KindBody means an unreadable 2xx response: not JSON, without status, an error without a code, too large, or
	// incomplete. After an incomplete response the phase is PhaseSent.
	KindBody Kind = "body"
)

// Error is returned by every failed call. Its text and the text of Err are valid UTF-8 and contain neither the token
// nor URL queries. Err wraps the cause (a hook's error, a *net.OpError) for errors.Is and errors.As. The text of the
// cause itself may contain secrets, so log the *Error, not the cause.
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
	Branded    bool          // code 19, 20 or 31337 with a "song" that is a notice
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
		b.WriteString("stopped before the body was sent")
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
