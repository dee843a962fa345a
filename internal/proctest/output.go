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

// Output collects the output of a process or a logger. The zero value is empty and ready to use. Safe for
// concurrent use.
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

// String returns everything written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Tail returns the last 8,000 bytes, for messages.
func (o *Output) Tail() string {
	const most = 8000
	s := o.String()
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// All yields the lines written so far that are JSON objects.
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

// Lines returns the log lines with this message and these fields, given as name, value, name, value …
func (o *Output) Lines(msg string, fields ...string) []Line {
	var out []Line
	for l := range o.All() {
		if l.Is("msg", msg) && l.has(fields) {
			out = append(out, l)
		}
	}
	return out
}

// Line is one log line, a JSON object.
type Line map[string]any

// Is reports whether a field has this text.
func (l Line) Is(field, text string) bool { s, _ := l[field].(string); return s == text }

func (l Line) has(fields []string) bool {
	for pair := range slices.Chunk(fields, 2) {
		if !l.Is(pair[0], pair[1]) {
			return false
		}
	}
	return true
}

// At returns the time of the line; zero if it has none.
func (l Line) At() time.Time {
	text, _ := l["time"].(string)
	when, _ := time.Parse(time.RFC3339Nano, text) // zero if it is not a time
	return when
}

// Number returns the value of a field; 0 if it is not a number.
func (l Line) Number(field string) float64 { n, _ := l[field].(float64); return n }
