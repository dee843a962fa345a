package auddsim

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// content describes the audio of a request. The audio itself is not kept.
type content struct {
	hash string
	size int64
	head []byte // the first bytes, for the WAV header
}

// Write keeps the size and the first bytes.
func (c *content) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	c.head = append(c.head, p[:min(len(p), headBytes-len(c.head))]...)
	return len(p), nil
}

const (
	maxField  = 1 << 20 // the most bytes kept of a form field
	headBytes = 64
)

// buffers are used to read bodies. A request needs no more memory than one of them.
var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// receive reads the whole request: the fields into c.sub, the audio into c.content. It returns errReset or errAnswer if a
// rule ends it early, errStopped if the call is over, and another error if the body was not received completely.
func (c *call) receive() error {
	buf, _ := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for name, values := range c.r.URL.Query() {
		c.field(name, values[0])
	}
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "multipart/form-data" && params["boundary"] != "":
		err = c.receiveParts(params["boundary"], *buf)
	case err == nil && kind == "application/x-www-form-urlencoded":
		err = c.receiveForm()
	default:
		err = nil // not a form, which AudD answers with 700
	}
	if err != nil {
		return err
	}
	if err := c.seeFields(); err != nil {
		return err
	}
	if err := c.body.drain(*buf); err != nil {
		return err
	}
	if url := c.sub.fields["url"]; c.content == nil && url != "" {
		sum := sha256.Sum256([]byte(url))
		c.content = &content{hash: hex.EncodeToString(sum[:])}
	}
	c.note(func(e *Request) {
		e.Complete, e.BodyBytes = true, c.body.n
		if c.content != nil {
			e.Hash = c.content.hash
		}
	})
	return nil
}

func (c *call) receiveForm() error {
	data, err := io.ReadAll(io.LimitReader(c.body, maxField))
	if err != nil {
		return fmt.Errorf("read form: %w", err)
	}
	values, err := url.ParseQuery(string(data))
	if err != nil {
		return nil //nolint:nilerr // unreadable fields count as not sent
	}
	for name, v := range values {
		c.field(name, v[0])
	}
	if audio := values.Get("audio"); audio != "" {
		return c.receiveAudio(base64.NewDecoder(base64.StdEncoding, strings.NewReader(audio)), make([]byte, 4096))
	}
	return nil
}

func (c *call) receiveParts(boundary string, buf []byte) error {
	parts := multipart.NewReader(c.body, boundary)
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.unlessComplete(err)
		}
		name := part.FormName()
		audio := io.Reader(part)
		switch {
		case name == "file" || part.FileName() != "":
			c.note(func(e *Request) { e.Name = path.Base(strings.ReplaceAll(part.FileName(), `\`, "/")) })
		case name == "audio":
			audio = base64.NewDecoder(base64.StdEncoding, part)
		default:
			value, err := io.ReadAll(io.LimitReader(part, maxField))
			if err != nil {
				return c.unlessComplete(err)
			}
			c.field(name, string(value))
			continue
		}
		err = c.seeFields()
		if err == nil {
			err = c.receiveAudio(audio, buf)
		}
		if err != nil {
			return c.unlessComplete(err)
		}
	}
}

// unlessComplete returns err unless the body was received completely: AudD responds to a malformed form.
func (c *call) unlessComplete(err error) error {
	ours := errors.Is(err, errReset) || errors.Is(err, errRespond) || errors.Is(err, errStopped)
	if ours || !c.body.eof || c.r.ContentLength >= 0 && c.body.n < c.r.ContentLength {
		return fmt.Errorf("read form: %w", err)
	}
	c.content = nil
	return nil
}

func (c *call) receiveAudio(r io.Reader, buf []byte) error {
	sum, audio := sha256.New(), &content{}
	if _, err := io.CopyBuffer(io.MultiWriter(sum, audio), r, buf); err != nil {
		return err
	}
	audio.hash = hex.EncodeToString(sum.Sum(nil))
	c.content = audio
	return nil
}

func (c *call) field(name, value string) {
	c.sub.fields[name] = value
	c.note(func(e *Request) {
		switch name {
		case "api_token":
			if e.token = value; value != "" {
				e.Token = mask(value)
			}
		case "url":
			e.URL = withoutQuery(value)
		case "audio_id":
			if id, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
				e.AudioID = &id
			}
		}
	})
}

// trigger is an action to run when so many bytes of the body were read.
type trigger struct {
	at   int64
	fire func() error
}

// body counts the bytes read of a request's body and stops exactly at its triggers.
type body struct {
	r        io.Reader
	n        int64
	eof      bool
	err      error // of a trigger; it stays
	triggers []trigger
	// wholeReads is set when the rules and holds over form fields have run. Until then reads are small, so that those
	// before the body find most of the audio unread.
	wholeReads bool
}

const smallRead = 256

// Read is io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.fire(b.n); err != nil {
		return 0, err
	}
	if !b.wholeReads && len(p) > smallRead {
		p = p[:smallRead]
	}
	for _, t := range b.triggers {
		p = p[:min(int64(len(p)), t.at-b.n)]
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	b.eof = b.eof || errors.Is(err, io.EOF)
	return n, err
}

// fire runs the actions that are due once n bytes of the body have been read. It stops at the first error.
func (b *body) fire(n int64) error {
	for b.err == nil {
		i := slices.IndexFunc(b.triggers, func(t trigger) bool { return t.at <= n })
		if i < 0 {
			break
		}
		due := b.triggers[i]
		b.triggers = slices.Delete(b.triggers, i, i+1)
		b.err = due.fire()
	}
	return b.err
}

// drain reads to the end and runs the remaining triggers, which lie behind the end of the body.
func (b *body) drain(buf []byte) error {
	for !b.eof {
		if _, err := b.Read(buf); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return b.fire(1<<63 - 1)
}
