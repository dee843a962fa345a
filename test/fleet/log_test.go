package fleet

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// output collects a worker's log, a JSON object a line. Safe for concurrent use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (o *output) tail() string {
	const most = 8000
	s := o.String()
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// line is one line of a log.
type line map[string]any

func (l line) is(field, want string) bool { s, _ := l[field].(string); return s == want }

func (l line) at() time.Time {
	text, _ := l["time"].(string)
	when, _ := time.Parse(time.RFC3339Nano, text) // zero if it is no time
	return when
}

func (l line) number(field string) float64 { n, _ := l[field].(float64); return n }

// lines are those with a message and with these fields: name, value, name, value …
func (o *output) lines(msg string, fields ...string) []line {
	var out []line
	for text := range strings.Lines(o.String()) {
		var l line
		if json.Unmarshal([]byte(text), &l) != nil || !l.is("msg", msg) {
			continue
		}
		fits := true
		for i := 0; i+1 < len(fields); i += 2 {
			fits = fits && l.is(fields[i], fields[i+1])
		}
		if fits {
			out = append(out, l)
		}
	}
	return out
}

// busy stretches every wait for a state: it bounds a test that is stuck on a
// machine that is shared, and measures nothing.
const busy = 4

// eventually polls until ok, or not within (stretched) time.
func eventually(within time.Duration, ok func() bool) bool {
	deadline := time.NewTimer(busy * within)
	defer deadline.Stop()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok() {
			return true
		}
		select {
		case <-deadline.C:
			return ok()
		case <-tick.C:
		}
	}
}

// pass lets time go by, where the time itself is what a test is about.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}
