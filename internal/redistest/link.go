package redistest

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// pendingMax is how many of a request's last bytes a trap matches.
const pendingMax = 256 << 10

// link is one proxied connection. Proxy.mu guards request, armed and silent.
type link struct {
	client, server *net.TCPConn
	over           chan struct{} // closed at the end of the link
	once           sync.Once

	request []byte // what the client sent since the server's last bytes
	armed   *trap  // the link is cut when the reply arrives
	silent  bool   // a reply was dropped
}

// reset closes both sides, the client's with RST.
func (l *link) reset() {
	_ = l.client.SetLinger(0) // only a closed connection refuses
	l.close()
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.over)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// connect dials the target for an accepted connection and copies both directions until the connection ends.
func (p *Proxy) connect(ln net.Listener, conn net.Conn) {
	client := conn.(*net.TCPConn) //nolint:forcetypeassert // from a TCP listener
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.Dial("tcp", p.target)
	if err != nil {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	l := &link{client: client, server: conn.(*net.TCPConn), over: make(chan struct{})} //nolint:forcetypeassert // dialled TCP
	p.locked(func() {
		if p.listener != ln { // the proxy was cut during the dial
			l.reset()
		}
		p.links[l] = struct{}{}
	})

	var pumps sync.WaitGroup
	pumps.Go(func() { pump(l, l.client, l.server, p.onRequest) })
	pumps.Go(func() { pump(l, l.server, l.client, p.onReply) })
	pumps.Wait()
	l.close()
	p.locked(func() { delete(p.links, l) })
}

// pump copies one direction. It forwards a chunk if pass returns true.
func pump(l *link, from, to *net.TCPConn, pass func(*link, []byte) bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && pass(l, buf[:n]) {
			if _, werr := to.Write(buf[:n]); werr != nil {
				l.reset()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite() // the other direction may still send
			return
		case err != nil:
			l.reset()
			return
		}
	}
}

// onRequest records a chunk from the client and reports whether to forward it.
func (p *Proxy) onRequest(l *link, chunk []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.request = append(l.request, chunk...)
	l.request = l.request[max(len(l.request)-pendingMax, 0):]
	i := slices.IndexFunc(p.traps, func(t *trap) bool { return t.match(l.request) })
	if i < 0 {
		return true
	}
	t := p.traps[i]
	p.traps = slices.Delete(p.traps, i, i+1)
	switch {
	case t.mute:
		p.muted = true
		close(t.fired)
	case t.before:
		l.reset()
		close(t.fired)
	default:
		l.armed = t
	}
	return !t.before
}

// onReply waits for the delay and reports whether to forward a chunk from the server.
func (p *Proxy) onReply(l *link, _ []byte) bool {
	p.mu.Lock()
	l.request = l.request[:0]
	if t := l.armed; t != nil {
		l.armed = nil
		l.reset()
		close(t.fired)
		p.mu.Unlock()
		return false
	}
	l.silent = l.silent || p.muted
	silent, delay := l.silent, p.delay
	p.mu.Unlock()
	if delay > 0 && !silent {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.over:
			return false
		}
	}
	return !silent
}
