package audd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// Audio is what a call is about: a URL that AudD downloads, or bytes from
// here. Exactly one of URL and Open is set.
type Audio struct {
	// URL is sent in the form body and shown nowhere else.
	URL string
	// Open returns the bytes and how many there are; called once a call, at its
	// start. The reader is streamed, never held in memory, and closed before the
	// call returns; Close may be called while Read runs, as *os.File allows.
	Open func() (io.ReadCloser, int64, error)
	// Name is the file name AudD sees; only its last element, default "audio".
	Name string
}

// BeforeBody runs at the first read of the request body: after DNS, dial, TLS
// and the request's head (which holds no secret and no parameter), before any
// byte of the body. An error ends the call as unsent. It runs at most once a
// call, on another goroutine, and the call does not return before it has. It
// must heed its context, which ends with the call's timeout.
type BeforeBody func(context.Context) error

// Meta is what every successful call reports about itself.
type Meta struct {
	HTTPStatus int
	RequestID  string        // X-Request-Id, for AudD's support
	Phase      Phase         // always PhaseAnswered
	Latency    time.Duration // from the start of the call to the end of the answer
	Warning    string        // code 51 (deprecated parameter), or fields that could not be read; empty if there is nothing to say
}

var (
	errNoAudio   = errors.New("audio: want either a URL or Open")
	errEmpty     = errors.New("audio is empty")
	errShort     = errors.New("audio ended before its announced size")
	errLong      = errors.New("audio is longer than its announced size")
	errSizeUnset = errors.New("audio has no known size")
)

// open returns the reader and its size, for a file; nil for a URL.
func (a Audio) open() (io.ReadCloser, int64, error) {
	if (a.URL == "") == (a.Open == nil) {
		return nil, 0, errNoAudio
	}
	if a.Open == nil {
		return nil, 0, nil
	}
	src, size, err := a.Open()
	if err != nil {
		return nil, 0, fmt.Errorf("open the audio: %w", err)
	}
	switch {
	case src == nil || size < 0:
		err = errSizeUnset
	case size == 0:
		err = errEmpty
	}
	if err != nil && src != nil {
		err = errors.Join(err, src.Close())
	}
	if err != nil {
		return nil, 0, err
	}
	return src, size, nil
}

// fileName is a short, plain last element of Name.
func (a Audio) fileName() string {
	name := filepath.Base(filepath.ToSlash(strings.ToValidUTF8(a.Name, "_")))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, name)
	name = truncate(name, 200)
	if name == "." || name == "/" || name == "" {
		return "audio"
	}
	return name
}

// exact reads exactly size bytes of src and fails when there are fewer or more,
// so that a file that changed under us is never sent as a whole.
type exact struct {
	src  io.Reader
	left int64
}

func (e *exact) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, e.expectEnd()
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.src.Read(p)
	e.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if n == 0 {
			err = errShort
		}
	}
	return n, err
}

// expectEnd is io.EOF when src has nothing more to give.
func (e *exact) expectEnd() error {
	var one [1]byte
	for range 100 { // a reader may return nothing a few times
		n, err := e.src.Read(one[:])
		switch {
		case n > 0:
			return errLong
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}
