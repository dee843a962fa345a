package worker

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// lookups are the questions of deliveries whether the outbox knows what ended
// their task. Every delivery asks, and nearly all are told "no": one round
// trip for each was a seventh of a worker's work, so many are answered by one.
//
// A question is answered by a read that begins after it was asked, so the
// answer is as fresh as that of a read of its own.
type lookups struct {
	mu      sync.Mutex
	waiting []question
	reading bool
	last    time.Time // when the last read began
}

type question struct {
	field  string
	answer chan found // buffered: the reader never waits
}

type found struct {
	value string
	ok    bool
	err   error
}

const (
	// lookupPace is the least time between the beginnings of two reads: under
	// load it gathers company, and whoever comes later than that waits for
	// nobody.
	lookupPace = 5 * time.Millisecond
	// lookupTimeout bounds one read, retries included: less than asynq's lease.
	lookupTimeout = 10 * time.Second
	// lookupMax is the most fields of one read.
	lookupMax = 500
)

// endedBy is the id of the settlement that outboxFinished has for a field.
func (o *outbox) endedBy(ctx context.Context, field string) (id string, known bool, err error) {
	l := &o.asked
	q := question{field: field, answer: make(chan found, 1)}
	l.mu.Lock()
	l.waiting = append(l.waiting, q)
	start := !l.reading
	l.reading = true
	l.mu.Unlock()
	if start {
		go o.answerAll()
	}
	select {
	case f := <-q.answer:
		return f.value, f.ok, f.err
	case <-ctx.Done():
		return "", false, fmt.Errorf("wait for a look into the outbox: %w", ctx.Err())
	}
}

// answerAll answers questions until none is left.
func (o *outbox) answerAll() {
	l := &o.asked
	for {
		l.mu.Lock()
		wait := time.Until(l.last.Add(lookupPace))
		l.mu.Unlock()
		if wait > 0 {
			timer := time.NewTimer(wait)
			<-timer.C
		}
		l.mu.Lock()
		n := min(len(l.waiting), lookupMax)
		if n == 0 {
			l.reading = false
			l.mu.Unlock()
			return
		}
		asked := l.waiting[:n:n]
		l.waiting = l.waiting[n:]
		l.last = time.Now()
		l.mu.Unlock()
		o.answer(asked)
	}
}

func (o *outbox) answer(asked []question) {
	fields := make([]string, len(asked))
	for i, q := range asked {
		fields[i] = q.field
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	values, err := o.rdb.HMGet(ctx, outboxFinished, fields...).Result()
	if err == nil && len(values) != len(asked) {
		err = fmt.Errorf("asked for %d fields, got %d", len(asked), len(values))
	}
	for i, q := range asked {
		f := found{err: err}
		if err == nil {
			f.value, f.ok = values[i].(string)
		}
		q.answer <- f
	}
}
