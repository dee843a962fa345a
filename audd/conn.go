package audd

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// responseGrace is how long a failed write waits for a response. A server that refuses a body (413) responds and
// closes the connection while the body is being sent. Without the wait, net/http reports the failed write and drops
// the response.
const responseGrace = 250 * time.Millisecond

// conn counts the bytes written to a connection. Counting body reads is not enough. If the server has closed a
// kept-alive connection, net/http reads the body into a buffer but sends none of it.
type conn struct {
	net.Conn

	written  atomic.Int64
	writing  atomic.Int64
	failed   atomic.Bool // a write has failed
	isClosed atomic.Bool // no later write can succeed

	once     sync.Once
	closing  chan struct{} // closed by Close
	readOnce sync.Once
	readDone chan struct{} // closed when reading has failed or ended
}

func newConn(c net.Conn) *conn {
	return &conn{Conn: c, closing: make(chan struct{}), readDone: make(chan struct{})}
}

// Write counts the written bytes. The first failed write waits for the response, at most responseGrace.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Add(1)
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	c.writing.Add(-1)
	if err != nil && !c.failed.Swap(true) {
		timer := time.NewTimer(responseGrace)
		defer timer.Stop()
		select {
		case <-c.readDone:
		case <-c.closing:
		case <-timer.C:
		}
	}
	return n, err //nolint:wrapcheck // a connection returns errors unchanged
}

// Read records the end of the stream.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.readOnce.Do(func() { close(c.readDone) })
	}
	return n, err //nolint:wrapcheck // as in Write
}

// Close closes the connection. A failed write stops waiting for the response.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closing) })
	err := c.Conn.Close()
	c.isClosed.Store(true)
	return err //nolint:wrapcheck // as in Write
}

// untouchedSince reports whether nothing was written since mark and nothing can be written later. false means
// unknown. It checks isClosed first, because no write succeeds after Close.
func (c *conn) untouchedSince(mark int64) bool {
	return c.isClosed.Load() && c.writing.Load() == 0 && c.written.Load() == mark
}

// ownConn returns the conn below TLS, or nil if another package dialled the connection.
func ownConn(c net.Conn) *conn {
	for c != nil {
		if own, ok := c.(*conn); ok {
			return own
		}
		below, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = below.NetConn()
	}
	return nil
}
