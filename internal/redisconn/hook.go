package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/internal/queue/asynqkey"
)

// queueHook works around two faults of asynq: it repeats an acknowledgement with
// a context that is already cancelled, and it polls without a pause while Redis
// answers every dequeue with an error.
type queueHook struct {
	stopped  context.Context //nolint:containedctx // ended by stopping
	stop     context.CancelFunc
	expired  context.Context //nolint:containedctx // ended stopBound after stopping, and by Close
	expire   context.CancelFunc
	dequeues errorPause
}

func newQueueHook() *queueHook {
	h := new(queueHook)
	h.stopped, h.stop = context.WithCancel(context.Background())
	h.expired, h.expire = context.WithCancel(context.Background())
	return h
}

func (h *queueHook) stopping() {
	h.stop()
	time.AfterFunc(stopBound, h.expire)
}

// detach returns a context with the deadline of ctx but without its
// cancellation and values. go-redis reads no values.
func (h *queueHook) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if h.stopped.Err() != nil {
		// A command that begins while stopping has 5 s of its own.
		if soon := time.Now().Add(stopBound); !bounded || soon.Before(deadline) {
			deadline = soon
		}
		return context.WithDeadline(context.Background(), deadline)
	}
	if bounded {
		return context.WithDeadline(h.expired, deadline)
	}
	return h.expired, func() {}
}

func (*queueHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *queueHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, cancel := h.detach(ctx)
		defer cancel()
		if cmd.Name() == "hello" {
			return greet(ctx, cmd, next)
		}
		err := next(ctx, cmd)
		if isDequeue(cmd) {
			h.dequeues.after(err, ctx.Done(), h.stopped.Done())
		}
		return err
	}
}

func (h *queueHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, cancel := h.detach(ctx)
		defer cancel()
		return next(ctx, cmds)
	}
}

// greetBound limits the HELLO of a new connection. go-redis retries it like any
// command, but always on the same connection: without the bound, a connection
// that breaks during its HELLO keeps its caller for all 100 retries (50 s).
const greetBound = 3 * time.Second

// greet sends the HELLO of a new connection. After greetBound it fails with an
// error for which go-redis retries the caller's command on another connection.
func greet(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	bound, cancel := context.WithTimeout(ctx, greetBound)
	defer cancel()
	err := next(bound, cmd)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("greet Redis: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// isDequeue recognizes asynq's dequeue script by the order of its keys.
func isDequeue(cmd redis.Cmder) bool {
	args := cmd.Args()
	if (cmd.Name() != "evalsha" && cmd.Name() != "eval") || len(args) < 7 {
		return false
	}
	for i, part := range []asynqkey.Part{asynqkey.Pending, asynqkey.Paused, asynqkey.Active, asynqkey.Lease} {
		if key, ok := args[3+i].(string); !ok || !strings.HasSuffix(key, ":"+string(part)) {
			return false
		}
	}
	return true
}

const (
	pauseMin = 100 * time.Millisecond
	pauseMax = 2 * time.Second
)

// errorPause slows down a loop of commands that Redis answers with errors. The
// pause is 100 ms, doubles up to 2 s, and is reset by a successful command. Safe
// for concurrent use.
type errorPause struct {
	mu   sync.Mutex
	next time.Duration
}

// after waits if err is an error reply of Redis (OOM, MISCONF, NOPERM …). It does
// not wait after network errors, for which go-redis backs off itself.
func (p *errorPause) after(err error, done, stopped <-chan struct{}) {
	if err == nil || errors.Is(err, redis.Nil) {
		p.mu.Lock()
		p.next = 0
		p.mu.Unlock()
		return
	}
	if _, ok := errors.AsType[redis.Error](err); !ok || redis.HasErrorPrefix(err, "NOSCRIPT") {
		return
	}
	p.mu.Lock()
	p.next = min(max(2*p.next, pauseMin), pauseMax)
	wait := p.next
	p.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	case <-stopped:
	}
}
