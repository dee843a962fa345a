package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// maskHook keeps the URL out of every error.
type maskHook struct{ mask mask }

func (h maskHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		return conn, h.mask.error(err)
	}
}

func (h maskHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h.mask.error(next(ctx, cmd)) }
}

func (h maskHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.Err() != nil {
				cmd.SetErr(h.mask.error(cmd.Err()))
			}
		}
		return h.mask.error(err)
	}
}

// queueHook repairs two faults of asynq from below: it hands a retried
// acknowledgement a context that is already cancelled, and it polls a Redis
// that answers every dequeue with an error as fast as it can. It also spares
// round trips and system calls: acks go together, sockets that just answered
// are not looked at.
type queueHook struct {
	stopOnce, closeOnce sync.Once
	stopped             chan struct{}   // closed by stopping
	expired             context.Context //nolint:containedctx // a bound of the hook's own, ended by close; go-redis brings the command's
	expire              context.CancelFunc
	mu                  sync.Mutex
	timer               *time.Timer
	pause               pause
	acks                acks
	rdb                 *redis.Client // for what the hook sends itself
}

func newQueueHook(rdb *redis.Client) *queueHook {
	h := &queueHook{stopped: make(chan struct{}), rdb: rdb}
	h.expired, h.expire = context.WithCancel(context.Background())
	return h
}

func (h *queueHook) stopping() {
	h.stopOnce.Do(func() {
		h.mu.Lock()
		h.timer = time.AfterFunc(stopBound, h.expire)
		h.mu.Unlock()
		close(h.stopped)
	})
}

func (h *queueHook) close() {
	h.closeOnce.Do(func() {
		h.mu.Lock()
		if h.timer != nil {
			h.timer.Stop()
		}
		h.mu.Unlock()
		h.expire()
	})
}

func (h *queueHook) isStopping() bool {
	select {
	case <-h.stopped:
		return true
	default:
		return false
	}
}

// detach takes cancellation away from ctx, keeps its deadline, and bounds it
// once stopping. Its values go with it: nothing below reads any.
func (h *queueHook) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if h.isStopping() {
		// Commands begun while stopping have 5 s of their own.
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

func (h *queueHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return proven(conn), nil
	}
}

func (h *queueHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, cancel := h.detach(ctx)
		defer cancel()
		if cmd.Name() == "hello" {
			return greet(ctx, cmd, next)
		}
		if isAck(cmd) && !h.isStopping() {
			return h.ack(ctx, cmd, next)
		}
		err := next(ctx, cmd)
		if isDequeue(cmd) {
			h.pause.after(err, ctx.Done(), h.stopped)
		}
		return err
	}
}

// greetBound is how long a new connection may take to greet Redis. go-redis
// repeats the greeting as often as any command, and always on the connection it
// began on: without a bound, one that died there keeps its caller for all 100
// retries (50 s), however soon Redis is back.
const greetBound = 3 * time.Second

// greet sends the greeting of a new connection. One that comes to no end in time
// is a broken connection, so that the command behind it goes on with another.
func greet(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	bound, cancel := context.WithTimeout(ctx, greetBound)
	defer cancel()
	err := next(bound, cmd)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("greet Redis: %w", io.ErrUnexpectedEOF)
	}
	return err
}

func (h *queueHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, cancel := h.detach(ctx)
		defer cancel()
		return next(ctx, cmds)
	}
}

// isDequeue recognises asynq's dequeue script by its keys: pending, paused,
// active and lease of one queue, in that order.
func isDequeue(cmd redis.Cmder) bool {
	name := cmd.Name()
	args := cmd.Args()
	if (name != "evalsha" && name != "eval") || len(args) < 7 {
		return false
	}
	return keyEnds(args[3], ":pending") && keyEnds(args[4], ":paused") && keyEnds(args[5], ":active") && keyEnds(args[6], ":lease")
}

func keyEnds(arg any, suffix string) bool {
	key, ok := arg.(string)
	return ok && strings.HasSuffix(key, suffix)
}

const (
	pauseMin = 100 * time.Millisecond
	pauseMax = 2 * time.Second
)

// pause slows a loop of error replies down: 100 ms, doubling to 2 s, gone with
// the first good answer. Safe for concurrent use.
type pause struct {
	mu   sync.Mutex
	next time.Duration
}

// after waits if err is an error reply of Redis (OOM, MISCONF, NOPERM …).
// Network failures are not its business: go-redis backs off there.
func (p *pause) after(err error, done, stopped <-chan struct{}) {
	var reply redis.Error
	if err == nil || errors.Is(err, redis.Nil) {
		p.mu.Lock()
		p.next = 0
		p.mu.Unlock()
		return
	}
	if !errors.As(err, &reply) || redis.HasErrorPrefix(err, "NOSCRIPT") {
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
