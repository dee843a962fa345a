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
	poolReserve      = 10 // for asynq's heartbeat, forwarder, recoverer …
	admissionTimeout = 2 * time.Second

	// stopBound limits the retries of a command after Stopping.
	stopBound = 5 * time.Second

	// A busy machine may delay Redis's replies, but Redis accepts connections soon.
	pingDial  = 3 * time.Second
	pingReply = 10 * time.Second
)

// Client is the client of Queue. Its retries can be limited when a service stops. It is safe for concurrent use. Close
// it once.
type Client struct {
	redis.UniversalClient
	queue *queueHook
}

// Stopping limits the retries of running and later commands to 5 s, so that a service can end while Redis is unavailable. It
// cannot be undone.
func (c *Client) Stopping() {
	c.queue.stopping()
}

// Close closes the connections and ends running commands.
func (c *Client) Close() error {
	c.queue.expire()
	return c.UniversalClient.Close()
}

// Queue returns the client that asynq's server, client and inspector share. Its pool has one connection per slot and 10 more.
// It retries a command up to 100 times, every 50 to 500 ms, until the context's deadline. It retries even if the context is
// cancelled.
func Queue(url string, slots int) (*Client, error) {
	rdb, err := open(url, func(o *redis.Options) {
		o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 100, 50*time.Millisecond, 500*time.Millisecond
		o.PoolSize = max(slots, 1) + poolReserve
	})
	if err != nil {
		return nil, fmt.Errorf("build the queue's Redis client: %w", err)
	}
	hook := newQueueHook()
	rdb.AddHook(hook)
	return &Client{UniversalClient: rdb, queue: hook}, nil
}

// Admission returns the client of the admission gates. It retries twice, waits at most 2 s for each step, and obeys contexts:
// the gates refuse calls while Redis does not reply, and must notice it soon.
func Admission(url string) (*redis.Client, error) {
	rdb, err := open(url, func(o *redis.Options) {
		o.MaxRetries = 2
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = admissionTimeout, admissionTimeout, admissionTimeout, admissionTimeout
	})
	if err != nil {
		return nil, fmt.Errorf("build the gates' Redis client: %w", err)
	}
	return rdb, nil
}

// open returns a client whose errors are masked. The mask is the first hook: it is the outermost one and gets the final error.
func open(url string, tune func(*redis.Options)) (*redis.Client, error) {
	opt, m, err := parse(url)
	if err != nil {
		return nil, err
	}
	tune(opt)
	rdb := redis.NewClient(opt)
	rdb.AddHook(m)
	return rdb, nil
}

// Ping checks once whether Redis at url is usable. It waits at most 3 s for the connection and 10 s for each reply, or until
// ctx ends.
func Ping(ctx context.Context, url string) error {
	rdb, err := open(url, func(o *redis.Options) {
		o.MaxRetries, o.PoolSize = -1, 1
		o.DialTimeout, o.ReadTimeout, o.ContextTimeoutEnabled = pingDial, pingReply, false
	})
	if err != nil {
		return err
	}
	defer rdb.Close()
	defer context.AfterFunc(ctx, func() { _ = rdb.Close() })() // interrupts a read; ctx.Err() is set by then
	if err := rdb.Ping(ctx).Err(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("reach Redis: %w", err)
	}
	return nil
}

var logOnce sync.Once

// SetLogger sends the log lines of go-redis to log at debug level, without their arguments, which contain addresses. A nil log
// discards them. The logger is global to go-redis, so only the first call has an effect. By default go-redis writes to stderr.
func SetLogger(log *slog.Logger) {
	logOnce.Do(func() { redis.SetLogger(quietLogger{log}) })
}

type quietLogger struct{ log *slog.Logger }

func (q quietLogger) Printf(ctx context.Context, format string, _ ...any) {
	if q.log != nil {
		q.log.DebugContext(ctx, "go-redis reports", "event", format)
	}
}
