package auddsim

import (
	"errors"
	"io"
)

// errReset and errAnswer end the reading of a body: the rule of the call wants a reset, or an answer, now.
var (
	errReset  = errors.New("rule resets the connection")
	errAnswer = errors.New("rule answers before the body")
)

// trip is something to do when so many bytes of the body were read.
type trip struct {
	at   int64
	fire func() error
}

// body counts what is read of a request's body and stops at trips exactly.
type body struct {
	r     io.Reader
	n     int64
	eof   bool
	err   error // sticky, of a trip
	trips []trip
	// cautious keeps reads small, so that a rule or a hold that depends on the file's name still finds most of the audio unread.
	cautious bool
}

const cautiousRead = 256

// Read is io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.fire(b.n); err != nil {
		return 0, err
	}
	if b.cautious && len(p) > cautiousRead {
		p = p[:cautiousRead]
	}
	for _, t := range b.trips {
		p = p[:min(int64(len(p)), t.at-b.n)]
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	b.eof = b.eof || errors.Is(err, io.EOF)
	return n, err
}

// fire runs the trips that are due at n bytes.
func (b *body) fire(n int64) error {
	if b.err != nil {
		return b.err
	}
	waiting := b.trips[:0:0]
	due := b.trips
	b.trips = nil
	for _, t := range due {
		if t.at > n {
			waiting = append(waiting, t)
			continue
		}
		if err := t.fire(); err != nil {
			b.err = err
			return err
		}
	}
	b.trips = waiting
	return nil
}

// drain reads to the end and fires what is left: a body shorter than a trip ends there.
func (b *body) drain(buf []byte) error {
	for !b.eof {
		if _, err := b.Read(buf); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return b.fire(1<<63 - 1)
}
