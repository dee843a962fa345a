package tasks

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scanned reads a payload in the very form Task writes, several times faster
// than encoding/json. What it takes, json.Marshal would write again byte for
// byte; whatever else it meets, it fails, and leaves to encoding/json.
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
			s.given(*f.to != "")
		}
	}
	if s.has(`,"size":`) {
		in.Size = s.integer()
		s.given(in.Size != 0)
	}
	for _, f := range []struct {
		name string
		to   *string
	}{{`,"sha256":`, &in.SHA256}, {`,"clip":`, &in.Clip}, {`,"origin_sha256":`, &in.OriginSHA256}} {
		if s.has(f.name) {
			*f.to = s.text()
			s.given(*f.to != "")
		}
	}
	if s.has(`,"seconds":`) {
		in.Seconds = s.float()
		s.given(in.Seconds != 0)
	}
	if s.has(`,"expires_at":`) {
		in.ExpiresAt = s.integer()
		s.given(in.ExpiresAt != 0)
	}
	s.literal(`},"params":`)
	s.params(&p.Params)
	if s.has(`,"max_units":`) {
		p.MaxUnits = s.integer()
		s.given(p.MaxUnits != 0)
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

// given checks a value that would be left out if it were empty.
func (s *scan) given(some bool) { s.failed = s.failed || !some }

// text reads a string of characters that are never escaped.
func (s *scan) text() string {
	if !s.has(`"`) {
		s.failed = true
		return ""
	}
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 || bytes.ContainsFunc(s.rest[:end], escapable) {
		s.failed = true
		return ""
	}
	text := string(s.rest[:end])
	s.rest = s.rest[end+1:]
	return text
}

// escapable is true for all that encoding/json may write in another way.
func escapable(c rune) bool {
	return c < ' ' || c >= utf8.RuneSelf || c == '\\' || c == '<' || c == '>' || c == '&'
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
	digits := s.number()
	n, err := strconv.ParseInt(digits, 10, 64)
	s.failed = s.failed || err != nil || strconv.FormatInt(n, 10) != digits
	return n
}

// float reads a number that encoding/json writes without an exponent.
func (s *scan) float() float64 {
	digits := s.number()
	n, err := strconv.ParseFloat(digits, 64)
	s.failed = s.failed || err != nil || math.Abs(n) < 1e-6 || math.Abs(n) >= 1e21 || strconv.FormatFloat(n, 'f', -1, 64) != digits
	return n
}

// params leaves all but the empty ones, which are the usual ones, to encoding/json.
func (s *scan) params(to *Params) {
	if s.has(`{}`) {
		return
	}
	raw := s.rest[:bytes.IndexByte(s.rest, '}')+1]
	s.rest = s.rest[len(raw):]
	err := json.Unmarshal(raw, to)
	again, rerr := json.Marshal(*to)
	s.failed = s.failed || err != nil || rerr != nil || !bytes.Equal(again, raw)
}
