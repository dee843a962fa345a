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

// queueHook works around two faults of asynq. asynq repeats an acknowledgement with a context that is already cancelled. It
// also polls without a pause while Redis replies to every dequeue with an error.
type queueHook struct {
	stopped  context.Context //nolint:containedctx // ends at stopping
	stop     context.CancelFunc
	expired  context.Context //nolint:containedctx // ends stopBound after stopping, and at Close
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

// detach returns a context with the deadline of ctx, but without its cancellation and values. go-redis reads no values.
func (h *queueHook) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if h.stopped.Err() != nil {
		// A command that begins after Stopping has its own 5 s.
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

// greetBound limits the HELLO of a new connection. go-redis retries it like any command, but always on the same connection.
// Without the bound, a connection that breaks during its HELLO would hold its caller for all 100 retries (50 s).
const greetBound = 3 * time.Second

// greet sends the HELLO of a new connection. After greetBound it fails with an error that makes go-redis retry the caller's
// command on another connection.
func greet(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	bound, cancel := context.WithTimeout(ctx, greetBound)
	defer cancel()
	err := next(bound, cmd)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("greet Redis: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// isDequeue reports whether a command is asynq's dequeue script, which it recognizes by the order of its keys.
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

// errorPause slows down a loop of commands that Redis refuses. The pause begins at 100 ms and doubles up to 2 s. A successful
// command resets it. It is safe for concurrent use.
type errorPause struct {
	mu   sync.Mutex
	next time.Duration
}

// after waits if err is an error reply of Redis (OOM, MISCONF, NOPERM …). It does not wait after network errors, because
// go-redis backs off after them.
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
