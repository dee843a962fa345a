package audd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// Response size limits in bytes after decompression. A larger response is an error of KindBody.
const (
	maxResponse           = 4 << 20  // recognize, upload, getStreams
	maxEnterpriseResponse = 64 << 20 // a day of audio in 12 s chunks is about 5 MiB
)

// call describes one request.
type call struct {
	op      string
	url     string
	timeout time.Duration
	limit   int64 // response size limit in bytes
	fields  []field
	audio   *Audio // nil if the operation sends no audio
	before  BeforeBody
}

// exchange is the state of one running call.
type exchange struct {
	call

	scrub scrubber
	start time.Time
	body  *requestBody
	conn  atomic.Pointer[conn] // the request's connection; nil if another package dialled it
	head  atomic.Int64         // bytes that conn wrote before the first body byte
}

// do sends one request. It returns AudD's success or an *Error.
func (c *Client) do(ctx context.Context, in call) (success, error) {
	token := strings.TrimSpace(c.cfg.Token())
	x := &exchange{call: in, start: time.Now(), scrub: scrubber{token: token}}
	if in.audio != nil {
		x.scrub.audioURL = in.audio.URL
	}
	if token == "" {
		return success{}, x.fail(&Error{Kind: KindCode, Code: codeNoToken, Phase: PhaseUnsent, Message: "no API token is set, nothing was sent"})
	}
	f, err := newForm(token, in.fields, in.audio)
	if err != nil {
		return success{}, x.fail(&Error{Kind: KindLocal, Phase: PhaseUnsent, Err: x.scrub.own(err)})
	}
	ctx, cancel := context.WithTimeout(ctx, in.timeout)
	defer cancel()
	x.body = &requestBody{ctx: ctx, before: in.before, form: f, starting: x.mark}
	if f.source != nil { // a blocked reader must not delay the call beyond its deadline
		defer context.AfterFunc(ctx, func() { _ = x.body.Close() })()
	}

	req, err := http.NewRequestWithContext(x.trace(ctx), http.MethodPost, in.url, x.body)
	if err != nil {
		_ = x.body.Close() // nothing was read
		return success{}, x.fail(&Error{Kind: KindLocal, Phase: PhaseUnsent, Err: x.scrub.foreign(err, nil)})
	}
	req.GetBody = nil // nothing can be replayed
	req.ContentLength = f.length
	req.Header.Set("Content-Type", f.contentType)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.cfg.UserAgent)

	// RoundTrip makes one request. Client.Do would follow redirects and send cookies.
	resp, err := c.transport.RoundTrip(req) //nolint:bodyclose // readResponse closes it
	if err != nil {
		cause := ctx.Err()
		cancel()
		return success{}, x.failTransport(err, cause)
	}
	raw, readErr := readResponse(resp, in.limit)
	cause := ctx.Err()
	if _, hookErr, _ := x.body.seal(); hookErr != nil { // the server responded before the body
		return success{}, x.fail(&Error{Kind: KindHook, Phase: PhaseUnsent, Err: x.scrub.own(hookErr)})
	}
	if readErr != nil {
		readErr = x.scrub.foreign(readErr, cause)
	}
	return x.interpret(resp, raw, readErr)
}

// trace returns a context that records the request's connection.
func (x *exchange) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			x.conn.Store(ownConn(info.Conn))
		},
	})
}

// mark records how many bytes the connection has written before the first body byte. net/http has flushed the request
// head at this point, so all later bytes belong to the body.
func (x *exchange) mark() {
	if own := x.conn.Load(); own != nil {
		x.head.Store(own.written.Load())
	}
}

// failTransport returns the error of a call without a response. cause is the context's error, or nil if the context
// has not ended.
func (x *exchange) failTransport(err, cause error) error {
	started, hookErr, localErr := x.body.seal()
	phase := PhaseUnsent
	if started {
		phase = PhaseSent
		if own := x.conn.Load(); own != nil && own.untouchedSince(x.head.Load()) {
			phase = PhaseUnsent
		}
	}
	switch {
	case hookErr != nil:
		return x.fail(&Error{Kind: KindHook, Phase: PhaseUnsent, Err: x.scrub.own(hookErr)})
	case localErr != nil && cause == nil:
		return x.fail(&Error{Kind: KindLocal, Phase: phase, Err: x.scrub.own(localErr)})
	default:
		return x.fail(&Error{Kind: KindTransport, Phase: phase, Err: x.scrub.foreign(err, cause)})
	}
}

// fail fills in the fields that every error has, and returns e.
func (x *exchange) fail(e *Error) error {
	e.Op = x.op
	e.Latency = time.Since(x.start)
	return e
}

// readResponse reads the whole body, which net/http has decompressed. A body larger than limit bytes is an error.
func readResponse(resp *http.Response, limit int64) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }() // the body was read completely or has failed
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, nil // 101: the body is the connection and never ends
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("read the response: %w", errTooLarge)
	}
	return raw, nil
}
