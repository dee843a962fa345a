package audd

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// The AudD codes that this package handles; callers decide what the others mean.
const (
	codeBlocked       = 19
	codeNeedsUpdate   = 20
	codeDeprecated    = 51
	codeNoToken       = 901
	codeSecurityBlock = 31337
)

var (
	errTooLarge = errors.New("the answer is too large")
	errNotJSON  = errors.New("the answer is not JSON")
	errCut      = errors.New("the answer is cut off")
	errNoStatus = errors.New("the answer has no status")
	errNoCode   = errors.New("the answer is an error without a code")
)

// answer is a success.
type answer struct {
	meta   Meta
	result json.RawMessage // nil if the key is missing
}

// envelope is a body, decoded as far as possible.
type envelope struct {
	json   bool // valid JSON of any type
	cut    bool // valid JSON so far, but incomplete
	fields map[string]json.RawMessage
}

func openEnvelope(raw []byte) envelope {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")) // byte order mark
	if !utf8.Valid(raw) {
		// Results are stored as JSON text, which must be valid UTF-8.
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	// A map, because encoding/json ignores the case of struct fields and fails on
	// the first wrong type.
	var fields map[string]json.RawMessage
	err := json.Unmarshal(raw, &fields)
	if err == nil {
		return envelope{json: true, fields: fields}
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		// encoding/json has no error type for incomplete input.
		return envelope{cut: len(bytes.TrimSpace(raw)) > 0 && strings.Contains(syntax.Error(), "unexpected end")}
	}
	return envelope{json: true}
}

// status returns "success", "error", another text, or "" if there is none.
func (e envelope) status() string {
	s, _ := scalar(e.fields["status"])
	return strings.ToLower(strings.TrimSpace(s))
}

// failure returns AudD's error code (0 = none) and message, which occur inside and
// beside the error object.
func (e envelope) failure() (code int, message string) {
	inner := object(e.fields["error"])
	for _, from := range []map[string]json.RawMessage{inner, e.fields} {
		if code == 0 {
			if n, ok := integer(from["error_code"]); ok && n > 0 && n < 1<<31 {
				code = int(n)
			}
		}
		if message == "" {
			message, _ = scalar(from["error_message"])
		}
	}
	if message == "" {
		message, _ = scalar(e.fields["error"])
	}
	return code, message
}

// interpret turns an HTTP answer into a success or an *Error. readErr is the
// scrubbed error of an incomplete answer.
func (x *exchange) interpret(resp *http.Response, raw []byte, readErr error) (answer, error) {
	status := resp.StatusCode
	success := status >= 200 && status < 300
	env := openEnvelope(raw)
	e := &Error{
		Phase:      PhaseAnswered,
		HTTPStatus: status,
		JSON:       env.json && readErr == nil,
		RequestID:  x.scrub.text(resp.Header.Get("X-Request-Id"), maxHeaderID),
		RetryAfter: retryAfter(resp.Header, time.Now()),
		Err:        readErr,
	}
	if readErr != nil && !errors.Is(readErr, errTooLarge) {
		e.Phase = PhaseSent
	}
	word := env.status()
	code, message := env.failure()
	result, hasResult := env.fields["result"]
	if word == "success" {
		code, message = 0, ""
	}
	e.Message = x.scrub.text(message, maxMessage)

	switch {
	case code == codeDeprecated && success && hasResult:
		return x.succeed(e, env, joinWarning("code 51", e.Message)), nil
	case code != 0:
		e.Kind, e.Code = KindCode, code
		e.Branded = branded(code, result)
	case !success:
		e.Kind = KindHTTP
	case readErr != nil:
		e.Kind = KindBody
	case word == "success":
		return x.succeed(e, env, ""), nil
	default:
		e.Kind = KindBody
		e.Phase, e.Err = env.unreadable(word)
	}
	return answer{}, x.fail(e)
}

// unreadable returns the phase and the error of a 2xx answer without a result.
func (e envelope) unreadable(word string) (Phase, error) {
	switch {
	case e.cut:
		return PhaseSent, errCut
	case !e.json:
		return PhaseAnswered, errNotJSON
	case word == "error":
		return PhaseAnswered, errNoCode
	default:
		return PhaseAnswered, errNoStatus
	}
}

// succeed builds the success from the facts that interpret collected in e.
func (x *exchange) succeed(e *Error, env envelope, warning string) answer {
	return answer{
		meta: Meta{
			HTTPStatus: e.HTTPStatus,
			RequestID:  e.RequestID,
			Phase:      PhaseAnswered,
			Latency:    time.Since(x.start),
			Warning:    warning,
		},
		result: env.fields["result"],
	}
}

// branded reports whether a block carries a song, such as "Sorry" by "your IP was
// blocked".
func branded(code int, result json.RawMessage) bool {
	switch code {
	case codeBlocked, codeNeedsUpdate, codeSecurityBlock:
		return len(object(result)) > 0
	}
	return false
}

func joinWarning(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}
