package proctest

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Output collects what a process, or a logger, writes. Its zero value is empty
// and ready. Safe for concurrent use.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String is everything written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Tail is the end of it, for messages.
func (o *Output) Tail() string {
	const most = 8000
	s := o.String()
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// All are the lines that are JSON objects, as far as they are written.
func (o *Output) All() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		for text := range strings.Lines(o.String()) {
			var l Line
			if json.Unmarshal([]byte(text), &l) == nil && !yield(l) {
				return
			}
		}
	}
}

// Lines are those with a message and with these fields: name, value, name, value …
func (o *Output) Lines(msg string, fields ...string) []Line {
	var out []Line
	for l := range o.All() {
		if l.Is("msg", msg) && l.has(fields) {
			out = append(out, l)
		}
	}
	return out
}

// Line is one line of a log, a JSON object.
type Line map[string]any

// Is reports whether a field is this text.
func (l Line) Is(field, want string) bool { s, _ := l[field].(string); return s == want }

func (l Line) has(fields []string) bool {
	for pair := range slices.Chunk(fields, 2) {
		if !l.Is(pair[0], pair[1]) {
			return false
		}
	}
	return true
}

// At is when it was logged, zero if it does not say.
func (l Line) At() time.Time {
	text, _ := l["time"].(string)
	when, _ := time.Parse(time.RFC3339Nano, text) // zero if it is no time
	return when
}

// Number is a field, 0 if it is no number.
func (l Line) Number(field string) float64 { n, _ := l[field].(float64); return n }
