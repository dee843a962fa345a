// Package queue reads and changes asynq's queues: it enqueues, counts and finds tasks, and it pauses queues. Package
// worker runs the tasks. No other package uses asynq's Redis keys or its Inspector.
package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/internal/queue/asynqkey"
	"reprise/tasks"
)

// Client reads and changes the queues of one Redis. It is safe for concurrent use.
type Client struct {
	rdb       redis.UniversalClient
	client    *asynq.Client
	inspector *asynq.Inspector
	pauses    *admission.Pauses
}

// New returns a Client on the caller's connection, which it does not close. The Redis keys of pause reasons start with
// prefix (admission.Config.Prefix).
func New(rdb redis.UniversalClient, prefix string) *Client {
	return &Client{
		rdb: rdb, pauses: admission.NewPauses(rdb, prefix),
		client: asynq.NewClientFromRedisClient(rdb), inspector: asynq.NewInspectorFromRedisClient(rdb),
	}
}

// All returns the names of all queues that asynq has seen, sorted.
func (c *Client) All(ctx context.Context) ([]string, error) {
	names, err := c.rdb.SMembers(ctx, asynqkey.Queues).Result()
	if err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// Names returns the queues of Reprise, which are named after a path, sorted.
func (c *Client) Names(ctx context.Context) ([]string, error) {
	names, err := c.All(ctx)
	return slices.DeleteFunc(names, func(q string) bool { _, _, err := tasks.SplitQueue(q); return err != nil }), err
}

// Worker is a process that runs one or more asynq servers.
type Worker struct {
	Host   string
	PID    int
	Queues []string // of all its servers, sorted
}

// Serves reports whether the worker takes tasks from the queue.
func (w Worker) Serves(queue string) bool { return slices.Contains(w.Queues, queue) }

// Workers returns the processes that serve queues of this Redis. A killed worker stays listed for up to 10 s.
func (c *Client) Workers(ctx context.Context) ([]Worker, error) {
	if err := ctx.Err(); err != nil { // the Inspector takes no context
		return nil, err
	}
	servers, err := c.inspector.Servers()
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	var out []Worker
	for _, srv := range servers {
		i := slices.IndexFunc(out, func(w Worker) bool { return w.Host == srv.Host && w.PID == srv.PID })
		if i < 0 {
			i = len(out)
			out = append(out, Worker{Host: srv.Host, PID: srv.PID})
		}
		for name := range srv.Queues {
			out[i].Queues = append(out[i].Queues, name)
		}
	}
	for i := range out {
		slices.Sort(out[i].Queues)
		out[i].Queues = slices.Compact(out[i].Queues)
	}
	return out, nil
}

// absent reports whether err means that a key does not exist.
func absent(err error) bool { return errors.Is(err, redis.Nil) }
