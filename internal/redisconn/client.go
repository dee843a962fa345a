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
	poolReserve     = 10 // connections beside one per slot: heartbeat, forwarder, recoverer …

	admissionRetries = 2
	admissionTimeout = 2 * time.Second

	// stopBound is how long a command is retried at most once stopping.
	stopBound = 5 * time.Second

	// A Redis that takes no connection is away; one that takes it and is slow to
	// answer may only be busy, as its machine may be when everything on it starts.
	pingDial  = 3 * time.Second
	pingReply = 10 * time.Second
)

// Client is a Redis client with a switch for stopping. It is a
// redis.UniversalClient and safe for concurrent use; Close it once.
type Client struct {
	redis.UniversalClient
	queue *queueHook // nil: nothing to stop
}

// Stopping bounds every command, running or new, to 5 s of retries from now
// on, so that a service can end while Redis is away. It cannot be undone and
// may be called more than once.
func (c *Client) Stopping() {
	if c.queue != nil {
		c.queue.stopping()
	}
}

// Close closes the connections and ends what Stopping started.
func (c *Client) Close() error {
	if c.queue != nil {
		c.queue.close()
	}
	return c.UniversalClient.Close()
}

// Queue builds the client asynq's server, client and inspector share. slots is
// how many tasks run at once in this process; the pool holds 10 connections
// more. A command is retried up to 100 times with 50–500 ms in between, also
// when its context was cancelled, but not beyond the context's deadline.
func Queue(url string, slots int) (*Client, error) {
	opt, m, err := parse(url)
	if err != nil {
		return nil, fmt.Errorf("build the queue's Redis client: %w", err)
	}
	opt.MaxRetries = queueRetries
	opt.MinRetryBackoff, opt.MaxRetryBackoff = queueBackoffMin, queueBackoffMax
	opt.DialerRetries = 1            // the back-off above is the only one
	opt.ContextTimeoutEnabled = true // deadlines also hold within a read or write
	opt.PoolSize = max(slots, 1) + poolReserve
	rdb := redis.NewClient(opt)
	hook := newQueueHook(rdb)
	// The first hook added is the outermost: it sees the final error.
	rdb.AddHook(maskHook{m})
	rdb.AddHook(hook)
	return &Client{UniversalClient: rdb, queue: hook}, nil
}

// Admission builds the client of the gates: 2 retries, 2 s for everything, and
// contexts are obeyed, because a gate that does not answer must fail closed soon.
func Admission(url string) (*Client, error) {
	opt, m, err := parse(url)
	if err != nil {
		return nil, fmt.Errorf("build the gates' Redis client: %w", err)
	}
	opt.MaxRetries = admissionRetries
	opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = admissionTimeout, admissionTimeout, admissionTimeout, admissionTimeout
	opt.DialerRetries = 1
	opt.ContextTimeoutEnabled = true
	rdb := redis.NewClient(opt)
	rdb.AddHook(maskHook{m})
	return &Client{UniversalClient: rdb}, nil
}

// Ping reports whether Redis at url can be used, with one try: at most 3 s for
// the connection and 10 s for each answer, less if ctx ends.
func Ping(ctx context.Context, url string) error {
	opt, m, err := parse(url)
	if err != nil {
		return err
	}
	opt.MaxRetries, opt.DialerRetries, opt.PoolSize = -1, 1, 1
	opt.DialTimeout, opt.ReadTimeout = pingDial, pingReply
	rdb := redis.NewClient(opt)
	defer rdb.Close()
	defer context.AfterFunc(ctx, func() { _ = rdb.Close() })() // a read does not look at ctx
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

// SetLogger sends what go-redis logs by itself to log at debug level, without
// its arguments: they hold addresses. The logger is global to go-redis; only
// the first call counts. Without it go-redis writes to stderr.
func SetLogger(log *slog.Logger) {
	logOnce.Do(func() { redis.SetLogger(quietLogger{log}) })
}

type quietLogger struct{ log *slog.Logger }

func (q quietLogger) Printf(ctx context.Context, format string, _ ...any) {
	if q.log != nil {
		q.log.DebugContext(ctx, "go-redis reports", "event", format)
	}
}
