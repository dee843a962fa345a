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
	"strconv"
	"strings"
	"sync"
)

// content is the audio of a request: what was read of it, never the bytes themselves.
type content struct {
	hash string
	size int64
	head []byte // the first bytes, for the WAV header
}

const (
	maxField  = 1 << 20 // bytes kept of one form field
	headBytes = 64
)

// buffers are what bodies are read through; nothing larger is held per request.
var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// receive reads the whole request: fields into c.sub, the audio into c.content. It returns errReset or errAnswer when a
// rule ends it early, else an error if the body did not arrive whole.
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
		err = nil // not a form: the answer will be 700, as AudD has it
	}
	if err != nil {
		return err
	}
	if err := c.named(); err != nil {
		return err
	}
	if err := c.body.drain(*buf); err != nil {
		return err
	}
	if c.content == nil && c.sub.url != "" {
		sum := sha256.Sum256([]byte(c.sub.url))
		c.content = &content{hash: hex.EncodeToString(sum[:])}
	}
	return nil
}

func (c *call) receiveForm() error {
	data, err := io.ReadAll(io.LimitReader(c.body, maxField))
	if err != nil {
		return fmt.Errorf("read form: %w", err)
	}
	values, err := url.ParseQuery(string(data))
	if err != nil {
		return nil //nolint:nilerr // what cannot be parsed is as good as not sent
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
		switch {
		case name == "file" || part.FileName() != "":
			c.sub.name = path.Base(strings.ReplaceAll(part.FileName(), `\`, "/"))
			if err = c.named(); err == nil {
				err = c.receiveAudio(part, buf)
			}
		case name == "audio":
			if err = c.named(); err == nil {
				err = c.receiveAudio(base64.NewDecoder(base64.StdEncoding, part), buf)
			}
		default:
			var value []byte
			if value, err = io.ReadAll(io.LimitReader(part, maxField)); err == nil {
				c.field(name, string(value))
			}
		}
		if err != nil {
			return c.unlessComplete(err)
		}
	}
}

// unlessComplete tells a form that is malformed (AudD answers it) from one that did not arrive.
func (c *call) unlessComplete(err error) error {
	ours := errors.Is(err, errReset) || errors.Is(err, errAnswer) || errors.Is(err, errStopped)
	if ours || !c.body.eof || c.r.ContentLength >= 0 && c.body.n < c.r.ContentLength {
		return fmt.Errorf("read form: %w", err)
	}
	c.content = nil
	return nil
}

// receiveAudio hashes the audio while it comes in.
func (c *call) receiveAudio(r io.Reader, buf []byte) error {
	sum, audio := sha256.New(), &content{}
	for {
		n, err := r.Read(buf)
		if room := headBytes - len(audio.head); room > 0 {
			audio.head = append(audio.head, buf[:min(n, room)]...)
		}
		sum.Write(buf[:n])
		audio.size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	audio.hash = hex.EncodeToString(sum.Sum(nil))
	c.content = audio
	return nil
}

// field takes a form or query field in.
func (c *call) field(name, value string) {
	c.sub.fields[name] = value
	switch name {
	case "api_token":
		c.sub.token = value
	case "url":
		c.sub.url = value
	case "audio_id":
		if id, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
			c.sub.audioID = &id
		}
	}
}
