package admission

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"reprise/tasks"
)

var errReply = errors.New("unknown reply")

// unreadable is the error of a reply nobody understands: fail closed.
func unreadable() error { return fmt.Errorf("read admission reply: %w: %w", ErrUnavailable, errReply) }

// reader takes a reply apart and remembers whether it had the expected shape.
type reader struct {
	list []any
	bad  bool
}

func asList(v any) []any { l, _ := v.([]any); return l }

func (r *reader) next() any {
	if len(r.list) == 0 {
		r.bad = true
		return nil
	}
	v := r.list[0]
	r.list = r.list[1:]
	return v
}

func (r *reader) int() int64 {
	n, ok := r.next().(int64)
	r.bad = r.bad || !ok
	return n
}

func (r *reader) text() string {
	s, ok := r.next().(string)
	r.bad = r.bad || !ok
	return s
}

func (r *reader) bool() bool            { return r.int() != 0 }
func (r *reader) millis() time.Duration { return time.Duration(r.int()) * time.Millisecond }
func (r *reader) moment() time.Time     { return moment(r.int()) }

// moment is a time of Redis's clock; 0 is the zero time.
func moment(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// permit reads a granted call and how long to wait for its start.
func (r *reader) permit(q Request) (p *Permit, start time.Duration) {
	p = &Permit{Key: q.Key, AttemptID: q.AttemptID, Path: q.Path, Group: q.Group, Units: q.Units, generation: q.Generation}
	p.Source, p.Epoch, p.admitted = r.text(), r.int(), r.int()
	start = time.Duration(r.int()) * time.Microsecond
	p.Probe = r.bool()
	p.budgets = r.text()
	if len(r.list) == 0 { // a task without a history
		return p, start
	}
	p.Record = tasks.AttemptRecord{
		Generation: r.int(), Counted: int(r.int()), PossiblyBilled: int(r.int()), Streak: int(r.int()), SameOutcome: int(r.int()),
		Throttles: int(r.int()), LastOutcome: tasks.Outcome(r.text()), Spent: r.millis(), FirstFailure: r.moment(),
	}
	lost := Lost{AttemptID: r.text(), Source: r.text(), Units: r.int(), At: r.moment()}
	if lost.AttemptID != "" {
		p.Lost = &lost
	}
	return p, start
}

// hash is a Redis hash as it was read.
type hash map[string]string

func asHash(v any) hash {
	list := asList(v)
	h := make(hash, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		field, _ := list[i].(string)
		h[field], _ = list[i+1].(string)
	}
	return h
}

func (h hash) int(field string) int64 {
	n, _ := strconv.ParseInt(h[field], 10, 64) // absent is 0
	return n
}

func (h hash) moment(field string) time.Time { return moment(h.int(field)) }
func (h hash) millis(field string) time.Duration {
	return time.Duration(h.int(field)) * time.Millisecond
}
