package redisconn

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// provenFor is how long after an answer a connection is taken as sound.
const provenFor = time.Second

// provenConn spares go-redis its look at the socket, a system call before each
// command, while the connection has just answered. One that was lost since is
// noticed by the command itself, which is repeated on another; one that has
// rested longer is looked at as before, so that after an outage a pool of dead
// connections does not use up the retries.
type provenConn struct {
	net.Conn

	socket   syscall.Conn
	answered atomic.Int64 // after begin, ns; 0 = not yet
}

// begin makes moments of the monotonic clock.
var begin = time.Now()

// proven wraps a connection that go-redis would look at; over TLS it never does.
func proven(conn net.Conn) net.Conn {
	if socket, ok := conn.(syscall.Conn); ok {
		return &provenConn{Conn: conn, socket: socket}
	}
	return conn
}

// Read notes when the server was heard last.
func (c *provenConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil {
		c.answered.Store(int64(time.Since(begin)))
	}
	return n, err //nolint:wrapcheck // a connection passes errors on as they are
}

// SyscallConn is the socket to look at.
func (c *provenConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.socket.SyscallConn()
	last := c.answered.Load()
	if err == nil && last > 0 && time.Since(begin)-time.Duration(last) < provenFor {
		return unread{raw}, nil
	}
	return raw, err //nolint:wrapcheck // as in Read
}

// unread is a socket with nothing to be read from it.
type unread struct{ syscall.RawConn }

func (unread) Read(func(fd uintptr) bool) error { return nil }
