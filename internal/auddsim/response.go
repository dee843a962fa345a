package auddsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// response is an HTTP response, before the faults of its connection.
type response struct {
	status  int
	kind    string // Content-Type
	header  map[string]string
	body    []byte
	code    int // AudD code in the body; 0 = none
	outcome string
}

const kindJSON = "application/json; charset=utf-8"

// success is AudD's envelope around a result. nil omits the key.
func (c *call) success(result json.RawMessage, outcome string) response {
	return response{status: http.StatusOK, kind: kindJSON, outcome: outcome,
		body: []byte(`{"status":"success"` + resultField(result) + c.executionTime() + "}")}
}

func (c *call) codeResponse(code int) response {
	return c.codeResponseText(code, message(code), nil)
}

// codeResponseText writes any bytes as the text, and a result beside the error unless it is nil.
func (c *call) codeResponseText(code int, text string, result json.RawMessage) response {
	params := fmt.Sprintf(`"request_params":%s,"request_api_method":%s,"request_http_method":%s`,
		c.echo(), quote(c.entry.Path), quote(c.entry.Method))
	if c.entry.Path == PathEnterprise {
		params = `"requested_params":` + c.echo()
	}
	return response{status: http.StatusOK, kind: kindJSON, code: code, outcome: "code_" + strconv.Itoa(code),
		body: fmt.Appendf(nil, `{"status":"error","error":{"error_code":%d,"error_message":%s}%s,%s,`+
			`"see api documentation":"https://docs.audd.io","contact us":"api@audd.io"%s}`,
			code, quote(text), resultField(result), params, c.executionTime())}
}

func resultField(result json.RawMessage) string {
	if result == nil {
		return ""
	}
	return `,"result":` + string(result)
}

// executionTime is the field that enterprise adds to every response; "" for other paths.
func (c *call) executionTime() string {
	if c.entry.Path != PathEnterprise {
		return ""
	}
	return `,"execution_time":"` + time.Since(c.entry.At).String() + `"`
}

// echo repeats the fields of the request as AudD does, with the token masked and the full URL.
func (c *call) echo() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.sub.fields)) {
		value := c.sub.fields[name]
		if name == "api_token" {
			value = mask(value)
		}
		out = append(out, quote(name)+":"+quote(value))
	}
	return "{" + strings.Join(out, ",") + "}"
}

// quote writes a JSON string. It keeps all bytes from 0x20, valid UTF-8 or not.
func quote(s string) string {
	out := make([]byte, 0, len(s)+2)
	out = append(out, '"')
	for i := range len(s) {
		switch ch := s[i]; {
		case ch == '"' || ch == '\\':
			out = append(out, '\\', ch)
		case ch < 0x20:
			out = fmt.Appendf(out, `\u%04x`, ch)
		default:
			out = append(out, ch)
		}
	}
	return string(append(out, '"'))
}
