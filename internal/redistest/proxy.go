package redistest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"reprise/internal/devredis/redisproc"
)

// Proxy forwards TCP connections to a server and breaks them on demand. It works with every protocol. A
// request is what the client has sent on a connection since the server's last bytes. Safe for concurrent use.
type Proxy struct {
	target string
	addr   string
	wg     sync.WaitGroup // accept loop and pumps

	mu       sync.Mutex
	listener net.Listener // nil while cut
	links    map[*link]struct{}
	closed   bool
	muted    bool          // Blackhole
	delay    time.Duration // before each chunk of a reply
	traps    []*trap
}

type trap struct {
	match  func(request []byte) bool
	before bool // cut instead of forwarding; otherwise cut when the reply arrives
	mute   bool // forward it, and Blackhole from its reply on
	fired  chan struct{}
}

// NewProxy starts a proxy in front of target (host:port). It ends with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	ln, err := redisproc.Listen()
	if err != nil {
		tb.Fatalf("redistest: start proxy: %s", err)
	}
	p := &Proxy{target: target, addr: ln.Addr().String(), links: map[*link]struct{}{}}
	p.serveLocked(ln) // nobody else has the proxy yet
	tb.Cleanup(func() {
		p.locked(func() { p.closed = true })
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// Addr is the proxy's host:port. Cut and Restore keep it.
func (p *Proxy) Addr() string { return p.addr }

// Cut resets all connections and refuses new ones until Restore.
func (p *Proxy) Cut() { p.locked(p.cutLocked) }

// Blackhole forwards requests and drops every reply until Restore. Connections are accepted and stay open.
func (p *Proxy) Blackhole() { p.locked(func() { p.muted = true }) }

// Delay delays every chunk of a reply by d; 0 ends the delay.
func (p *Proxy) Delay(d time.Duration) { p.locked(func() { p.delay = d }) }

// LoseReply cuts the connection of the next matching request after the server has sent the reply and before
// the client gets a byte of it. The channel is closed then. LoseReply works once.
func (p *Proxy) LoseReply(match func(request []byte) bool) <-chan struct{} {
	return p.set(trap{match: match})
}

// LoseRequest cuts the connection of the next matching request instead of forwarding the chunk that completes
// the match. The channel is closed then. LoseRequest works once.
func (p *Proxy) LoseRequest(match func(request []byte) bool) <-chan struct{} {
	return p.set(trap{match: match, before: true})
}

// BlackholeAt starts Blackhole at the next matching request: the server gets that request and its reply is
// dropped. The channel is closed before a later reply can pass. BlackholeAt works once.
func (p *Proxy) BlackholeAt(match func(request []byte) bool) <-chan struct{} {
	return p.set(trap{match: match, mute: true})
}

// Containing matches requests that contain all the texts.
func Containing(texts ...string) func(request []byte) bool {
	return func(request []byte) bool {
		for _, text := range texts {
			if !bytes.Contains(request, []byte(text)) {
				return false
			}
		}
		return true
	}
}

// Restore ends Cut, Blackhole and Delay. Connections that lost a reply are reset; faults that wait for a
// matching request stay set.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted, p.delay = false, 0
	for l := range p.links {
		if l.silent {
			l.reset()
		}
	}
	if p.listener != nil || p.closed {
		return
	}
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", p.addr)
	if err != nil {
		panic("redistest: listen again on " + p.addr + ": " + err.Error())
	}
	p.serveLocked(ln)
}

func (p *Proxy) set(t trap) <-chan struct{} {
	t.fired = make(chan struct{})
	p.locked(func() { p.traps = append(p.traps, &t) })
	return t.fired
}

func (p *Proxy) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func (p *Proxy) cutLocked() {
	if p.listener != nil {
		_ = p.listener.Close() // the only error is a second close
		p.listener = nil
	}
	for l := range p.links {
		l.reset()
	}
}

func (p *Proxy) serveLocked(ln net.Listener) {
	p.listener = ln
	p.wg.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return // closed by Cut or at the end
			}
			p.wg.Go(func() { p.connect(ln, client) })
		}
	})
}
