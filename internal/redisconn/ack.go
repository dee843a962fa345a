package redisconn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// acks are asynq's acknowledgements of finished tasks on their way. Under load
// many finish within milliseconds and share a round trip. Whatever does not
// come back as done is sent by itself, with all its retries, as if there had
// been no company.
type acks struct {
	mu      sync.Mutex
	waiting []ack
	sending bool
	last    time.Time // when the last batch was sent
}

type ack struct {
	cmd      redis.Cmder
	deadline time.Time     // of its own context; zero = none
	end      chan struct{} // closed when its batch is over
}

// errAlone is the error of an ack that no batch has an answer for: when Redis
// refuses a connection, go-redis (9.23) tells it to Exec and to no command.
var errAlone = errors.New("not acknowledged in company")

const (
	// ackPace is the least time between two batches: under load it gathers
	// company, and whoever comes later than that waits for nobody.
	ackPace = 3 * time.Millisecond
	// ackTimeout bounds a batch, far within the lease of the tasks in it, 30 s.
	ackTimeout = 2 * time.Second
)

// ack sends cmd in company.
func (h *queueHook) ack(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	a := ack{cmd: cmd, end: make(chan struct{})}
	a.deadline, _ = ctx.Deadline()
	cmd.SetErr(errAlone)
	h.acks.mu.Lock()
	h.acks.waiting = append(h.acks.waiting, a)
	start := !h.acks.sending
	h.acks.sending = true
	h.acks.mu.Unlock()
	if start {
		go h.sendAcks()
	}
	<-a.end
	if cmd.Err() == nil {
		return nil
	}
	return next(ctx, cmd)
}

// sendAcks sends batches until nothing is left.
func (h *queueHook) sendAcks() {
	for {
		h.acks.mu.Lock()
		wait := time.Until(h.acks.last.Add(ackPace))
		h.acks.mu.Unlock()
		if wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-h.stopped:
				timer.Stop()
			}
		}
		h.acks.mu.Lock()
		batch := h.acks.waiting
		h.acks.waiting = nil
		if len(batch) == 0 {
			h.acks.sending = false
			h.acks.mu.Unlock()
			return
		}
		h.acks.last = time.Now()
		h.acks.mu.Unlock()
		go h.sendBatch(batch) // the next one does not wait for its answer
	}
}

func (h *queueHook) sendBatch(batch []ack) {
	now := time.Now()
	until := now.Add(ackTimeout)
	pipe := h.rdb.Pipeline()
	for _, a := range batch {
		if !a.deadline.IsZero() && a.deadline.Before(until) {
			if !a.deadline.After(now) {
				continue // its lease is over
			}
			until = a.deadline
		}
		_ = pipe.Process(h.expired, a.cmd) // only queues it
	}
	ctx, cancel := context.WithDeadline(h.expired, until)
	defer cancel()
	_, _ = pipe.Exec(ctx) // each command knows its own error
	for _, a := range batch {
		close(a.end)
	}
}

// isAck recognises asynq's script for a task that is completed (its result is
// retained) by its keys: active, lease and completed of one queue, in that
// order. An eval, which asynq sends when Redis has forgotten the script, goes by
// itself.
func isAck(cmd redis.Cmder) bool {
	args := cmd.Args()
	return cmd.Name() == "evalsha" && len(args) >= 6 &&
		keyEnds(args[3], ":active") && keyEnds(args[4], ":lease") && keyEnds(args[5], ":completed")
}
