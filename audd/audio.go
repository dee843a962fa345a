package audd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Audio is the audio of a call: a URL that AudD downloads, or bytes to send. Exactly one of URL and Open must be set.
type Audio struct {
	// URL is sent in the form body and appears in no error.
	URL string
	// Open returns a reader of the audio and its size in bytes. Every call to AudD calls Open once, before it connects,
	// streams the reader, and closes it before it returns. Close may run concurrently with Read, as *os.File allows.
	Open func() (io.ReadCloser, int64, error)
	// Name is the file name that AudD receives. Folders in it are dropped. Default "audio".
	Name string
}

// BeforeBody is a hook that runs after DNS, dial, TLS and the request head, and before the first byte of the body.
// The head contains neither the token nor a parameter. If the hook fails, the call ends as unsent. The hook runs at
// most once per call, on another goroutine, and the call waits for it. The hook must return when its context ends,
// which is at the latest at the call's timeout.
type BeforeBody func(context.Context) error

var (
	errNoAudio   = errors.New("audio: exactly one of URL and Open must be set")
	errEmpty     = errors.New("audio is empty")
	errShort     = errors.New("audio is shorter than its declared size")
	errLong      = errors.New("audio is longer than its declared size")
	errSizeUnset = errors.New("audio size is unknown")
)

// open returns the audio's reader and size. For a URL it returns nil and 0.
func (a Audio) open() (io.ReadCloser, int64, error) {
	switch {
	case (a.URL == "") == (a.Open == nil):
		return nil, 0, errNoAudio
	case a.Open == nil:
		return nil, 0, nil
	}
	src, size, err := a.Open()
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("open the audio: %w", err)
	case src == nil:
		return nil, 0, errSizeUnset
	case size < 0:
		return nil, 0, errors.Join(errSizeUnset, src.Close())
	case size == 0:
		return nil, 0, errors.Join(errEmpty, src.Close())
	}
	return src, size, nil
}

// fileName returns the last element of Name without control characters, cut to 200 bytes.
func (a Audio) fileName() string {
	name := filepath.Base(filepath.ToSlash(strings.ToValidUTF8(a.Name, "_")))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, name)
	if name == "." || name == "/" {
		return "audio"
	}
	return truncate(name, 200)
}

// exact reads exactly left bytes of src. It fails if src has fewer or more bytes, so a file that changes during the
// call is never sent completely.
type exact struct {
	src  io.Reader
	left int64
}

func (e *exact) Read(p []byte) (int, error) {
	if e.left == 0 {
		n, err := io.ReadFull(e.src, make([]byte, 1))
		if n > 0 {
			return 0, errLong
		}
		return 0, err
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
