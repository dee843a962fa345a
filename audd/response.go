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

// AudD codes that this package handles. The caller interprets all others.
const (
	codeBlocked       = 19
	codeNeedsUpdate   = 20
	codeDeprecated    = 51
	codeNoToken       = 901
	codeSecurityBlock = 31337
)

var (
	errTooLarge = errors.New("the response is too large")
	errNotJSON  = errors.New("the response is not JSON")
	errCut      = errors.New("the response is truncated")
	errNoStatus = errors.New("the response has no status")
	errNoCode   = errors.New("the response is an error without a code")
)

// Meta describes a successful call.
type Meta struct {
	HTTPStatus int
	RequestID  string        // X-Request-Id, for AudD's support
	Latency    time.Duration // from the start of the call to the end of the response
	Warning    string        // reports code 51 (deprecated parameter) or unreadable fields; "" = none
}

func (m *Meta) warn(text string) {
	if m.Warning != "" {
		m.Warning += ": "
	}
	m.Warning += text
}

// success is a successful response.
type success struct {
	meta   Meta
	result json.RawMessage // "null" if the response has no result
}

// envelope is a response body, decoded as far as possible.
type envelope struct {
	json   bool // valid JSON of any type
	cut    bool // incomplete JSON
	fields map[string]json.RawMessage
}

func openEnvelope(raw []byte) envelope {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")) // byte order mark
	if !utf8.Valid(raw) {
		// Results are stored as JSON text, which must be valid UTF-8.
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	// A map is case-sensitive and accepts fields of every type. A struct is neither.
	var fields map[string]json.RawMessage
	err := json.Unmarshal(raw, &fields)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		// encoding/json has no error type for incomplete input.
		return envelope{cut: len(bytes.TrimSpace(raw)) > 0 && strings.Contains(syntax.Error(), "unexpected end")}
	}
	return envelope{json: true, fields: fields}
}

// failure returns AudD's error code (0 = none) and message. AudD sends them inside the error object or beside it.
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

// interpret returns the success or the *Error that an HTTP response describes. readErr is the scrubbed error of an
// incomplete body.
func (x *exchange) interpret(resp *http.Response, raw []byte, readErr error) (success, error) {
	status := resp.StatusCode
	ok := status >= 200 && status < 300
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
	word, _ := scalar(env.fields["status"])
	word = strings.ToLower(strings.TrimSpace(word))
	code, message := 0, ""
	if word != "success" {
		code, message = env.failure()
	}
	result, hasResult := env.fields["result"]
	e.Message = x.scrub.text(message, maxMessage)

	switch {
	case code == codeDeprecated && ok && hasResult:
		return x.succeed(e, result, strings.TrimSuffix("code 51: "+e.Message, ": ")), nil
	case code != 0:
		e.Kind, e.Code = KindCode, code
		e.Branded = branded(code, result)
	case !ok:
		e.Kind = KindHTTP
	case readErr != nil:
		e.Kind = KindBody
	case word == "success":
		return x.succeed(e, result, ""), nil
	default:
		e.Kind = KindBody
		e.Phase, e.Err = env.unreadable(word)
	}
	return success{}, x.fail(e)
}

// unreadable returns the phase and the error for a 2xx response without a result.
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

// succeed returns the success, with the fields that interpret collected in e.
func (x *exchange) succeed(e *Error, result json.RawMessage, warning string) success {
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	return success{
		meta:   Meta{HTTPStatus: e.HTTPStatus, RequestID: e.RequestID, Latency: time.Since(x.start), Warning: warning},
		result: result,
	}
}

// branded reports whether a block's result has a song. AudD uses the song as a notice, such as "Sorry" by "your IP
// was blocked".
func branded(code int, result json.RawMessage) bool {
	switch code {
	case codeBlocked, codeNeedsUpdate, codeSecurityBlock:
		return len(object(result)) > 0
	}
	return false
}
