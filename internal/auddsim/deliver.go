package auddsim

import (
	"cmp"
	"net"
	"net/http"
	"strconv"
	"time"
)

// deliver sends the response, with the faults of its connection. It finishes the call before the last byte.
func (c *call) deliver(a response) {
	c.note(func(e *Request) { e.Status, e.Code = a.status, a.code })
	h := c.w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("X-Request-Id", c.entry.RequestID)
	for name, value := range a.header {
		h.Set(name, value)
	}
	if c.fault() == FaultGzip {
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	switch {
	case c.fault() == FaultCutAnswer && len(a.body) > 1:
		c.w.WriteHeader(a.status)
		_, _ = c.w.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(c.w).Flush() // a client that has left needs no response
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

// trickle sends the response in ten pieces during Rule.Over.
func (c *call) trickle(a response) {
	over := cmp.Or(c.rule.Over, time.Second)
	const pieces = 10
	c.w.WriteHeader(a.status)
	sent, last := 0, len(a.body)-1
	for i := 1; i <= pieces; i++ {
		to := last * i / pieces
		_, _ = c.w.Write(a.body[sent:to])
		_ = http.NewResponseController(c.w).Flush() // wait notices a client that has left
		sent = to
		if !c.wait(over / pieces) {
			panic(http.ErrAbortHandler)
		}
	}
	c.finish(a.outcome)
	_, _ = c.w.Write(a.body[last:])
}

func (c *call) reset() {
	eof := c.rule != nil && c.rule.EOF
	c.finish(string(c.fault()))
	c.drop(eof)
}

// drop closes the connection with FIN (eof) or with RST.
func (c *call) drop(eof bool) {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && !eof {
		_ = tcp.SetLinger(0) // the close sends RST instead of FIN
	}
	_ = conn.Close()
}
