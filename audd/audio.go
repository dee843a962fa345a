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

// Audio is the audio of a call: a URL that AudD downloads, or bytes to send.
// Exactly one of URL and Open must be set.
type Audio struct {
	// URL is sent in the form body and appears in no error.
	URL string
	// Open returns the bytes and their number. It is called once, at the start of
	// the call. The reader is streamed and closed before the call returns; Close
	// may be called concurrently with Read, as *os.File allows.
	Open func() (io.ReadCloser, int64, error)
	// Name is the file name sent to AudD, reduced to its last element. Default
	// "audio".
	Name string
}

// BeforeBody runs after DNS, dial, TLS and the request head, which holds no
// secret and no parameter, and before the first byte of the body. An error ends
// the call as unsent. It runs at most once per call, on another goroutine, and
// the call waits for it. It must return when its context ends, which is at the
// call's timeout at the latest.
type BeforeBody func(context.Context) error

// Meta describes a successful call.
type Meta struct {
	HTTPStatus int
	RequestID  string        // X-Request-Id, for AudD's support
	Phase      Phase         // always PhaseAnswered
	Latency    time.Duration // from the start of the call to the end of the answer
	Warning    string        // code 51 (deprecated parameter) or unreadable fields; "" = none
}

var (
	errNoAudio   = errors.New("audio: exactly one of URL and Open must be set")
	errEmpty     = errors.New("audio is empty")
	errShort     = errors.New("audio is shorter than its announced size")
	errLong      = errors.New("audio is longer than its announced size")
	errSizeUnset = errors.New("audio has no known size")
)

// open returns the reader and its size, nil and 0 for a URL.
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

// fileName returns the last element of Name, shortened and without control
// characters.
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

// exact reads exactly left bytes of src and fails if there are fewer or more, so
// that a file that changed meanwhile is never sent completely.
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

// expectEnd returns io.EOF if src is at its end.
func (e *exact) expectEnd() error {
	n, err := io.ReadFull(e.src, make([]byte, 1))
	if n > 0 {
		return errLong
	}
	return err
}
