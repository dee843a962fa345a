package uploadcrash

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// gate is a TCP proxy that holds, on demand, a request before the server gets it
// or a reply before the client gets it. Safe for concurrent use.
type gate struct {
	t      *testing.T
	target string
	addr   string
	wg     sync.WaitGroup

	mu      sync.Mutex
	ln      net.Listener // nil while closed
	blocked []net.Conn   // fills the accept queue of a late gate
	links   map[*link]struct{}
	holds   []*hold
}

// link is one connection. request and total are under gate.mu.
type link struct {
	client, server *net.TCPConn
	over           chan struct{} // closed by reset
	once           sync.Once
	request        []byte // the last bytes that the client sent since the server's last bytes
	total          int64  // the number of all those bytes
}

// passing is the traffic that a hold matches.
type passing struct {
	request []byte
	total   int64
	reply   []byte // nil while the request passes
}

// hold holds all traffic that matches until it is released.
type hold struct {
	match    func(passing) bool
	reply    bool
	reached  chan struct{}
	released chan struct{}
	once     sync.Once
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{t: t, target: target, addr: ln.Addr().String(), links: map[*link]struct{}{}}
	g.serve(ln)
	t.Cleanup(func() {
		g.close()
		g.wg.Wait()
	})
	return g
}

// newLateGate accepts no connection before serveLate: dials hang, because the
// accept queue of the socket is full.
func newLateGate(t *testing.T, target string) *gate {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(fd, 0))
	f := os.NewFile(uintptr(fd), "late gate")
	ln, err := net.FileListener(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	g := &gate{t: t, target: target, addr: ln.Addr().String(), links: map[*link]struct{}{}, ln: ln}
	t.Cleanup(func() {
		g.close()
		g.wg.Wait()
	})
	for {
		conn, err := net.DialTimeout("tcp", g.addr, 300*time.Millisecond)
		if err != nil {
			return g
		}
		g.blocked = append(g.blocked, conn)
	}
}

// serveLate begins to accept connections.
func (g *gate) serveLate() {
	g.mu.Lock()
	ln, blocked := g.ln, g.blocked
	g.blocked = nil
	g.mu.Unlock()
	for _, c := range blocked {
		_ = c.Close()
	}
	if ln != nil && blocked != nil {
		g.serve(ln)
	}
}

func (g *gate) serve(ln net.Listener) {
	g.mu.Lock()
	g.ln = ln
	g.mu.Unlock()
	g.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			g.wg.Go(func() { g.connect(conn.(*net.TCPConn)) })
		}
	})
}

// close refuses new connections and resets the open ones, until open.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.blocked {
		_ = c.Close()
	}
	g.blocked = nil
	if g.ln != nil {
		_ = g.ln.Close()
		g.ln = nil
	}
	g.cutLocked()
}

func (g *gate) open() {
	ln, err := net.Listen("tcp", g.addr)
	require.NoError(g.t, err)
	g.serve(ln)
}

// cut resets all connections once; held traffic is lost.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cutLocked()
}

func (g *gate) cutLocked() {
	for l := range g.links {
		l.reset()
	}
}

// hold holds matching requests or, if reply is true, their replies.
func (g *gate) hold(match func(passing) bool, reply bool) *hold {
	h := &hold{match: match, reply: reply, reached: make(chan struct{}), released: make(chan struct{})}
	g.mu.Lock()
	g.holds = append(g.holds, h)
	g.mu.Unlock()
	return h
}

// release forwards what a hold holds and ends the hold.
func (g *gate) release(h *hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.holds, h); i >= 0 {
		g.holds = slices.Delete(g.holds, i, i+1)
		close(h.released)
	}
}

// drop resets all connections and ends the hold.
func (g *gate) drop(h *hold) {
	g.mu.Lock()
	g.cutLocked()
	g.mu.Unlock()
	g.release(h)
}

func (l *link) reset() {
	l.once.Do(func() {
		close(l.over)
		_ = l.client.SetLinger(0)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

func (g *gate) connect(client *net.TCPConn) {
	_ = client.SetReadBuffer(64 << 10) // a small buffer: the sender soon blocks while its data is held
	conn, err := net.Dial("tcp", g.target)
	if err != nil {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	l := &link{client: client, server: conn.(*net.TCPConn), over: make(chan struct{})}
	g.mu.Lock()
	if g.ln == nil {
		l.reset()
	}
	g.links[l] = struct{}{}
	g.mu.Unlock()
	var pumps sync.WaitGroup
	pumps.Go(func() { g.pump(l, l.client, l.server, g.onRequest) })
	pumps.Go(func() { g.pump(l, l.server, l.client, g.onReply) })
	pumps.Wait()
	l.once.Do(func() { // both sides closed: an orderly end
		close(l.over)
		_ = l.client.Close()
		_ = l.server.Close()
	})
	g.mu.Lock()
	delete(g.links, l)
	g.mu.Unlock()
}

func (g *gate) pump(l *link, from, to *net.TCPConn, held func(*link, []byte) *hold) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if h := held(l, buf[:n]); h != nil {
				h.once.Do(func() { close(h.reached) })
				select {
				case <-h.released:
				case <-l.over:
					return
				}
			}
			if _, werr := to.Write(buf[:n]); werr != nil {
				l.reset()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite()
			return
		case err != nil:
			l.reset()
			return
		}
	}
}

const requestTail = 64 << 10

func (g *gate) onRequest(l *link, chunk []byte) *hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.total += int64(len(chunk))
	l.request = append(l.request, chunk...)
	if extra := len(l.request) - requestTail; extra > 0 {
		l.request = append(l.request[:0], l.request[extra:]...)
	}
	return g.heldLocked(passing{request: l.request, total: l.total}, false)
}

func (g *gate) onReply(l *link, chunk []byte) *hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.heldLocked(passing{request: l.request, total: l.total, reply: chunk}, true)
	l.request, l.total = l.request[:0], 0
	return h
}

func (g *gate) heldLocked(p passing, reply bool) *hold {
	for _, h := range g.holds {
		if h.reply == reply && h.match(p) {
			return h
		}
	}
	return nil
}

// containing matches a request that contains all the texts, and its reply unless
// that is a NOSCRIPT error.
func containing(texts ...string) func(passing) bool {
	return func(p passing) bool {
		for _, text := range texts {
			if !bytes.Contains(p.request, []byte(text)) {
				return false
			}
		}
		return !bytes.HasPrefix(p.reply, []byte("-NOSCRIPT"))
	}
}

func without(match func(passing) bool, text string) func(passing) bool {
	return func(p passing) bool { return match(p) && !bytes.Contains(p.request, []byte(text)) }
}

// bodyBegan matches an upload request once body bytes have arrived.
func bodyBegan(p passing) bool {
	_, body, found := bytes.Cut(p.request, []byte("\r\n\r\n"))
	return found && len(body) > 0 && bytes.HasPrefix(p.request, []byte("POST /upload/"))
}

func moreThan(n int64) func(passing) bool { return func(p passing) bool { return p.total > n } }
