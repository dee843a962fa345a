package auddsim

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// answer is what goes out, before a fault spoils it.
type answer struct {
	status  int
	kind    string // Content-Type
	header  map[string]string
	body    []byte
	code    int // AudD code in the body, 0: none
	outcome string
}

const kindJSON = "application/json; charset=utf-8"

// success is AudD's envelope around a result; nil leaves the key out.
func (c *call) success(result json.RawMessage, outcome string) answer {
	var b bytes.Buffer
	b.WriteString(`{"status":"success"`)
	if result != nil {
		b.WriteString(`,"result":`)
		b.Write(result)
	}
	if c.sub.path == PathEnterprise {
		b.WriteString(`,"execution_time":"` + time.Since(c.entry.At).String() + `"`)
	}
	b.WriteString("}")
	return answer{status: http.StatusOK, kind: kindJSON, body: b.Bytes(), outcome: outcome}
}

// codeAnswer is AudD's envelope of an error with its usual text.
func (c *call) codeAnswer(code int) answer {
	return c.codeAnswerText(code, []byte(message(code)), nil)
}

// codeAnswerText writes the text as it is, so that it may be no valid UTF-8, and a result beside it unless that is nil.
func (c *call) codeAnswerText(code int, text []byte, result json.RawMessage) answer {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"status":"error","error":{"error_code":%d,"error_message":%s}`, code, quote(string(text)))
	if result != nil {
		b.WriteString(`,"result":`)
		b.Write(result)
	}
	if c.sub.path == PathEnterprise {
		b.WriteString(`,"requested_params":` + c.echo())
	} else {
		fmt.Fprintf(&b, `,"request_params":%s,"request_api_method":%s,"request_http_method":%s`, c.echo(), quote(c.sub.path), quote(c.r.Method))
	}
	b.WriteString(`,"see api documentation":"https://docs.audd.io","contact us":"api@audd.io"`)
	if c.sub.path == PathEnterprise {
		b.WriteString(`,"execution_time":"` + time.Since(c.entry.At).String() + `"`)
	}
	b.WriteString("}")
	return answer{status: http.StatusOK, kind: kindJSON, body: b.Bytes(), code: code, outcome: "code_" + strconv.Itoa(code)}
}

// echo is the request's fields as AudD repeats them: the token masked, a url whole.
func (c *call) echo() string {
	names := make([]string, 0, len(c.sub.fields))
	for name := range c.sub.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	var b bytes.Buffer
	b.WriteString("{")
	for i, name := range names {
		value := c.sub.fields[name]
		if name == "api_token" {
			value = mask(value)
		}
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(quote(name) + ":" + quote(value))
	}
	b.WriteString("}")
	return b.String()
}

// quote writes a JSON string and keeps every byte from 0x20 on as it is, valid UTF-8 or not.
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

// ruledAnswer is what the call's rule makes of the natural answer; nil: there is none yet, the body was not read.
func (c *call) ruledAnswer(natural *answer) answer {
	r := c.rule
	var a answer
	switch {
	case r.Code != 0:
		text := []byte(message(r.Code))
		if r.Message != "" {
			text = []byte(r.Message)
		}
		if len(r.MessageBytes) > 0 {
			text = r.MessageBytes
		}
		a = c.codeAnswerText(r.Code, text, c.besideCode())
	case r.Status != 0 && (r.Status < 200 || r.Status > 299 || natural == nil):
		a = answer{kind: "text/html; charset=utf-8", body: page(r.Status), outcome: "http_" + strconv.Itoa(r.Status)}
	case natural.code == 0 && len(r.RawResult) > 0:
		a = c.success(r.RawResult, natural.outcome)
	case natural.code == 0 && r.Result == ResultAbsent:
		a = c.success(nil, natural.outcome)
	default:
		a = *natural
	}
	if r.Status != 0 {
		a.status = r.Status
	}
	a.status = max(a.status, http.StatusOK)
	a.header = r.AnswerHeader
	if r.Body != "" || len(r.BodyBytes) > 0 {
		a.body = append([]byte(r.Body), r.BodyBytes...)
		a.outcome = "http_" + strconv.Itoa(a.status)
	}
	return spoil(a, r.Fault)
}

// besideCode is the result key beside an error code.
func (c *call) besideCode() json.RawMessage {
	r := c.rule
	switch {
	case len(r.RawResult) > 0:
		return r.RawResult
	case r.Result == ResultNull:
		return json.RawMessage(`null`)
	case r.Result == ResultMatch || r.Result == "" && len(r.Songs) > 0:
		song := c.song(0)
		song.Score = 0
		return raw(song)
	}
	return nil
}

// page is what an edge in front of an API answers.
func page(status int) []byte {
	text := http.StatusText(status)
	return fmt.Appendf(nil, "<!DOCTYPE html>\n<html><head><title>%d %s</title></head>\n<body><h1>%s</h1><p>Error %d</p><hr>simulated edge</body></html>\n",
		status, text, text, status)
}

// spoil applies the faults that change the body.
func spoil(a answer, f Fault) answer {
	switch f {
	case FaultTruncated:
		a.body = a.body[:len(a.body)/2]
	case FaultText:
		a.body, a.kind = []byte("please try again in a moment"), "text/plain; charset=utf-8"
	case FaultEmpty:
		a.body = nil
	case FaultArray:
		a.body = []byte(`[]`)
	case FaultNoStatus:
		a.body = []byte(`{"result":null}`)
	case FaultGzip:
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(a.body) // writing to a bytes.Buffer cannot fail
		_ = z.Close()
		a.body = b.Bytes()
		return a
	default:
		return a
	}
	a.outcome = string(f)
	return a
}

// deliver sends the answer. The books are closed before the last byte leaves.
func (c *call) deliver(a answer) {
	c.sim.log.note(func() { c.entry.Status, c.entry.Code = a.status, a.code })
	h := c.w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("X-Request-Id", c.entry.RequestID)
	for name, value := range a.header {
		h.Set(name, value)
	}
	if c.fault() == FaultGzip {
		h.Set("Content-Encoding", "gzip")
	}
	if a.status == http.StatusNoContent || a.status == http.StatusNotModified {
		c.finish(a.outcome)
		c.w.WriteHeader(a.status)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	switch {
	case c.fault() == FaultCutAnswer && len(a.body) > 1:
		c.w.WriteHeader(a.status)
		_, _ = c.w.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(c.w).Flush() // a client that is gone needs no answer
		c.finish(string(FaultCutAnswer))
		c.drop(true)
	case c.fault() == FaultSlowAnswer && len(a.body) > 1:
		c.trickle(a)
	default:
		c.finish(a.outcome)
		c.w.WriteHeader(a.status)
		_, _ = c.w.Write(a.body)
	}
}

// trickle sends the answer in ten pieces over the rule's time.
func (c *call) trickle(a answer) {
	over := c.rule.Over
	if over == 0 {
		over = time.Second
	}
	const pieces = 10
	c.w.WriteHeader(a.status)
	sent, last := 0, len(a.body)-1
	for i := 1; i <= pieces; i++ {
		to := last * i / pieces
		_, _ = c.w.Write(a.body[sent:to])
		_ = http.NewResponseController(c.w).Flush() // a client that is gone is noticed by wait
		sent = to
		if !c.wait(over / pieces) {
			panic(http.ErrAbortHandler)
		}
	}
	c.finish(a.outcome)
	_, _ = c.w.Write(a.body[last:])
}

// reset ends the connection without an answer, as the rule of the call says.
func (c *call) reset() {
	eof := c.rule != nil && c.rule.EOF
	c.finish(string(c.fault()))
	c.drop(eof)
}

// drop closes the connection: with FIN, or with RST.
func (c *call) drop(eof bool) {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && !eof {
		_ = tcp.SetLinger(0) // without it the close is a FIN, which is the other fault
	}
	_ = conn.Close() // nothing can be done about a connection that is being thrown away
}
