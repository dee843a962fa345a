package auddsim

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// work chooses the response, charges the request and stores an upload. The body was received completely.
func (c *call) work() response {
	code, quota := c.sim.tokens.check(c.entry.token, c.entry.Path)
	good := code == 0
	if c.rule == nil {
		c.rule = c.sim.pick(&c.sub, func(r *Rule) bool { return !r.early() && (good || r.edge()) })
	}
	if !good && c.rule == nil {
		return c.codeResponse(code)
	}
	natural, units := c.natural()
	a := natural
	if c.rule != nil {
		a = c.ruledResponse(&natural)
	}
	if !good || !metered(c.entry.Path) {
		return a
	}
	billed := c.billed(a)
	if billed && !c.sim.bill.charge(c.entry, units, quota) {
		if c.rule == nil || !c.rule.edge() {
			return c.codeResponse(902)
		}
		billed = false
	}
	if billed {
		c.note(func(e *Request) { e.Units = units })
	}
	if c.stored(a, billed) {
		c.sim.catalog.put(c.entry, time.Now())
	}
	return a
}

// billed reports whether the request is charged, as doc.go says under "What is charged".
func (c *call) billed(a response) bool {
	if c.rule != nil && c.rule.Billed != nil {
		return *c.rule.Billed
	}
	switch {
	case c.fault() == FaultResetAfterBody || c.fault() == FaultResetBeforeAnswer:
		return true
	case a.code != 0:
		return codeBilled(a.code)
	}
	return statusBilled(a.status)
}

// stored reports whether an upload takes effect: it is valid, and was charged or answered with success.
func (c *call) stored(a response, billed bool) bool {
	success := a.code == 0 && a.status < 300
	return c.entry.Path == PathUpload && c.content != nil && c.entry.AudioID != nil && c.audioCode() == 0 &&
		(billed || success) && (a.code == 0 || a.code == 51)
}

const maxRecognizeBytes = 10 << 20

// audioCode is the code for missing or unusable audio; 0 = it is usable.
func (c *call) audioCode() int {
	switch {
	case c.content == nil:
		return 700
	case c.sub.fields["url"] == "" && c.content.size == 0:
		return 300
	case c.entry.Path == PathRecognize && c.content.size > maxRecognizeBytes:
		return 400
	}
	return 0
}

// natural is the response without a rule, and the units it costs.
func (c *call) natural() (response, int64) {
	switch c.entry.Path {
	case PathStreams:
		return c.success(json.RawMessage(`[]`), "streams"), 0
	case PathOther:
		if strings.Contains(c.r.URL.Path, "getCallbackUrl") {
			return c.codeResponse(19), 0
		}
		return c.codeResponse(1000), 0
	case PathUpload:
		if c.entry.AudioID == nil {
			return c.codeResponse(701), 0
		}
	}
	if code := c.audioCode(); code != 0 {
		return c.codeResponse(code), 1
	}
	switch c.entry.Path {
	case PathEnterprise:
		return c.enterprise()
	case PathUpload:
		return c.success(json.RawMessage(`null`), "uploaded"), 1
	}
	result, outcome := c.recognize()
	return c.success(result, outcome), 1
}

// ruledResponse is the response of the call's rule. natural is the response without the rule; nil = the body was not read.
func (c *call) ruledResponse(natural *response) response {
	r := c.rule
	var a response
	switch {
	case r.Code != 0:
		a = c.codeResponseText(r.Code, cmp.Or(string(r.MessageBytes), r.Message, message(r.Code)), c.besideCode())
	case r.Status != 0 && (r.Status < 200 || r.Status > 299 || natural == nil):
		a = response{kind: "text/html; charset=utf-8", body: page(r.Status), outcome: "http_" + strconv.Itoa(r.Status)}
	case natural.code == 0 && len(r.RawResult) > 0:
		a = c.success(r.RawResult, natural.outcome)
	case natural.code == 0 && r.Result == ResultAbsent:
		a = c.success(nil, natural.outcome)
	default:
		a = *natural
	}
	a.status = cmp.Or(r.Status, a.status, http.StatusOK)
	a.header = r.AnswerHeader
	if r.Body != "" || len(r.BodyBytes) > 0 {
		a.body = append([]byte(r.Body), r.BodyBytes...)
		a.outcome = "http_" + strconv.Itoa(a.status)
	}
	return spoil(a, r.Fault)
}

// besideCode is the result beside an error code; nil = no result key.
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

func page(status int) []byte {
	text := http.StatusText(status)
	return fmt.Appendf(nil, "<!DOCTYPE html>\n<html><head><title>%d %s</title></head>\n<body><h1>%s</h1><p>Error %d</p><hr>simulated edge</body></html>\n",
		status, text, text, status)
}

func spoil(a response, f Fault) response {
	body, replaced := map[Fault]string{
		FaultTruncated: string(a.body[:len(a.body)/2]), FaultText: "please try again in a moment", FaultEmpty: "",
		FaultArray: `[]`, FaultNoStatus: `{"result":null}`,
	}[f]
	switch {
	case replaced:
		a.body, a.outcome = []byte(body), string(f)
		if f == FaultText {
			a.kind = "text/plain; charset=utf-8"
		}
	case f == FaultGzip:
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(a.body) // writing to a bytes.Buffer cannot fail
		_ = z.Close()
		a.body = b.Bytes()
	}
	return a
}
