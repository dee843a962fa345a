package tasks

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// scanned reads a payload in the very form Task writes, several times faster
// than encoding/json. It is not strict: whoever asks compares what Task would
// write for the answer with what was read.
func scanned(payload []byte) (p Payload, ok bool) {
	s := scan{rest: payload}
	s.literal(`{"v":`)
	p.Version = int(s.integer())
	s.literal(`,"path":`)
	p.Path = Path(s.text())
	s.literal(`,"key":`)
	p.Key = s.text()
	s.literal(`,"input":{"kind":`)
	p.Input.Kind = InputKind(s.text())
	in := &p.Input
	for _, f := range []struct {
		name string
		to   *string
	}{{`,"path":`, &in.Path}, {`,"url":`, &in.URL}} {
		if s.has(f.name) {
			*f.to = s.text()
		}
	}
	if s.has(`,"size":`) {
		in.Size = s.integer()
	}
	for _, f := range []struct {
		name string
		to   *string
	}{{`,"sha256":`, &in.SHA256}, {`,"clip":`, &in.Clip}, {`,"origin_sha256":`, &in.OriginSHA256}} {
		if s.has(f.name) {
			*f.to = s.text()
		}
	}
	if s.has(`,"seconds":`) {
		in.Seconds = s.float()
	}
	if s.has(`,"expires_at":`) {
		in.ExpiresAt = s.integer()
	}
	s.literal(`},"params":`)
	s.params(&p.Params)
	if s.has(`,"max_units":`) {
		p.MaxUnits = s.integer()
	}
	s.literal(`}`)
	return p, !s.failed && len(s.rest) == 0
}

// scan is a place in a payload; once something is not as expected it has failed.
type scan struct {
	rest   []byte
	failed bool
}

func (s *scan) has(text string) bool {
	if len(s.rest) < len(text) || string(s.rest[:len(text)]) != text {
		return false
	}
	s.rest = s.rest[len(text):]
	return true
}

func (s *scan) literal(text string) { s.failed = !s.has(text) || s.failed }

// text reads a string without escapes.
func (s *scan) text() string {
	if !s.has(`"`) {
		s.failed = true
		return ""
	}
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 || bytes.IndexByte(s.rest[:end], '\\') >= 0 {
		s.failed = true
		return ""
	}
	text := string(s.rest[:end])
	s.rest = s.rest[end+1:]
	return text
}

// number takes what a number may consist of.
func (s *scan) number() string {
	n := 0
	for n < len(s.rest) && strings.IndexByte("0123456789+-.eE", s.rest[n]) >= 0 {
		n++
	}
	digits := string(s.rest[:n])
	s.rest = s.rest[n:]
	return digits
}

func (s *scan) integer() int64 {
	n, err := strconv.ParseInt(s.number(), 10, 64)
	s.failed = s.failed || err != nil
	return n
}

func (s *scan) float() float64 {
	n, err := strconv.ParseFloat(s.number(), 64)
	s.failed = s.failed || err != nil
	return n
}

// params leaves all but the empty ones, which are the usual ones, to encoding/json.
func (s *scan) params(to *Params) {
	if s.has(`{}`) {
		return
	}
	end := bytes.IndexByte(s.rest, '}') + 1
	s.failed = s.failed || end == 0 || json.Unmarshal(s.rest[:end], to) != nil
	s.rest = s.rest[end:]
}
