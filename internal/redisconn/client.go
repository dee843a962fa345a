package redisconn

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	queueRetries    = 100
	queueBackoffMin = 50 * time.Millisecond
	queueBackoffMax = 500 * time.Millisecond
	poolReserve     = 10 // for asynq's heartbeat, forwarder, recoverer …

	admissionRetries = 2
	admissionTimeout = 2 * time.Second

	// stopBound limits the retries of a command once the client is stopping.
	stopBound = 5 * time.Second

	// Redis may answer slowly while its machine is busy, but it accepts connections soon.
	pingDial  = 3 * time.Second
	pingReply = 10 * time.Second
)

// Client is a redis.UniversalClient that can bound its retries when a service
// stops. It is safe for concurrent use. Close it once.
type Client struct {
	redis.UniversalClient
	queue *queueHook // nil for the client of the gates, whose retries are always short
}

// Stopping bounds every running and every later command to 5 s of retries, so
// that a service can end while Redis is away. It cannot be undone.
func (c *Client) Stopping() {
	if c.queue != nil {
		c.queue.stopping()
	}
}

// Close closes the connections and ends running commands.
func (c *Client) Close() error {
	if c.queue != nil {
		c.queue.expire()
	}
	return c.UniversalClient.Close()
}

// Queue builds the client that asynq's server, client and inspector share. The
// pool holds one connection per slot and 10 more. A command is retried up to 100
// times, with 50 to 500 ms in between, even if its context is cancelled, but not
// beyond the context's deadline.
func Queue(url string, slots int) (*Client, error) {
	opt, m, err := parse(url)
	if err != nil {
		return nil, fmt.Errorf("build the queue's Redis client: %w", err)
	}
	opt.MaxRetries, opt.MinRetryBackoff, opt.MaxRetryBackoff = queueRetries, queueBackoffMin, queueBackoffMax
	opt.PoolSize = max(slots, 1) + poolReserve
	rdb := redis.NewClient(opt)
	hook := newQueueHook()
	// The hook added first is the outermost and sees the final error.
	rdb.AddHook(maskHook{m})
	rdb.AddHook(hook)
	return &Client{UniversalClient: rdb, queue: hook}, nil
}

// Admission builds the client of the admission gates. It retries twice, waits at
// most 2 s for everything and obeys contexts, because the gates refuse calls
// while Redis does not answer and must find that out soon.
func Admission(url string) (*Client, error) {
	opt, m, err := parse(url)
	if err != nil {
		return nil, fmt.Errorf("build the gates' Redis client: %w", err)
	}
	opt.MaxRetries = admissionRetries
	opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = admissionTimeout, admissionTimeout, admissionTimeout, admissionTimeout
	rdb := redis.NewClient(opt)
	rdb.AddHook(maskHook{m})
	return &Client{UniversalClient: rdb}, nil
}

// Ping checks once whether Redis at url is usable. It takes at most 3 s for the
// connection and 10 s for each answer, less if ctx ends.
func Ping(ctx context.Context, url string) error {
	opt, m, err := parse(url)
	if err != nil {
		return err
	}
	opt.MaxRetries, opt.PoolSize = -1, 1
	opt.DialTimeout, opt.ReadTimeout, opt.ContextTimeoutEnabled = pingDial, pingReply, false
	rdb := redis.NewClient(opt)
	defer rdb.Close()
	defer context.AfterFunc(ctx, func() { _ = rdb.Close() })() // so that ctx.Err() is set when the end of ctx interrupts a read
	rdb.AddHook(maskHook{m})
	if err := rdb.Ping(ctx).Err(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("reach Redis: %w", err)
	}
	return nil
}

var logOnce sync.Once

// SetLogger sends the log lines of go-redis to log at debug level, without their
// arguments, which contain addresses; a nil log discards them. The logger is
// global to go-redis, and only the first call has an effect. Without a call
// go-redis writes to stderr.
func SetLogger(log *slog.Logger) {
	logOnce.Do(func() { redis.SetLogger(quietLogger{log}) })
}

type quietLogger struct{ log *slog.Logger }

func (q quietLogger) Printf(ctx context.Context, format string, _ ...any) {
	if q.log != nil {
		q.log.DebugContext(ctx, "go-redis reports", "event", format)
	}
}
