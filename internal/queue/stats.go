package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/internal/queue/asynqkey"
)

// Stats counts the tasks of a queue by state.
type Stats struct {
	Queue         string    `json:"queue"`
	Pending       int64     `json:"pending"`
	Active        int64     `json:"active"`
	Scheduled     int64     `json:"scheduled"`
	Retry         int64     `json:"retry"`
	Archived      int64     `json:"archived"`
	Completed     int64     `json:"completed"`
	Paused        bool      `json:"paused"` // asynq's pause flag
	OldestPending time.Time `json:"-"`      // zero = no task is pending, or asynq did not record since when
}

// Waiting returns how many tasks will run without a user's action.
func (s Stats) Waiting() int64 { return s.Pending + s.Scheduled + s.Retry }

// Stats returns the counts of one queue. They are zero for a queue that was never used.
func (c *Client) Stats(ctx context.Context, queue string) (Stats, error) {
	all, err := c.AllStats(ctx, []string{queue})
	if err != nil {
		return Stats{}, err
	}
	return all[0], nil
}

// AllStats returns the counts of many queues in two round trips. The counts of one queue belong to one moment. asynq's
// Inspector is not used, because it fails for a queue that was never used, and when a task ends while it measures memory.
func (c *Client) AllStats(ctx context.Context, queues []string) ([]Stats, error) {
	out := make([]Stats, len(queues))
	if len(queues) == 0 {
		return out, nil
	}
	replies := make([]statReplies, len(queues))
	_, err := c.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, queue := range queues {
			replies[i].request(ctx, p, queue)
		}
		return nil
	})
	if err != nil && !absent(err) { // absent: no task is pending
		return nil, fmt.Errorf("count the tasks of the queues: %w", err)
	}
	since := make([]*redis.StringCmd, len(queues))
	_, err = c.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, queue := range queues {
			since[i] = p.HGet(ctx, asynqkey.Task(queue, replies[i].oldest.Val()), "pending_since")
		}
		return nil
	})
	if err != nil && !absent(err) { // absent: the task was taken meanwhile
		return nil, fmt.Errorf("read the age of the oldest pending task: %w", err)
	}
	for i, queue := range queues {
		out[i] = replies[i].stats(queue)
		out[i].OldestPending = nanos(since[i].Val())
	}
	return out, nil
}

// Paused returns asynq's pause flag.
func (c *Client) Paused(ctx context.Context, queue string) (bool, error) {
	n, err := c.rdb.Exists(ctx, asynqkey.Of(queue, asynqkey.Paused)).Result()
	if err != nil {
		return false, fmt.Errorf("read the pause flag of queue %s: %w", queue, err)
	}
	return n == 1, nil
}

// statReplies are the replies about one queue.
type statReplies struct {
	pending, active, scheduled, retry, archived, completed, paused *redis.IntCmd
	oldest                                                         *redis.StringCmd // id of the task that runs next
}

func (r *statReplies) request(ctx context.Context, p redis.Pipeliner, queue string) {
	length := func(part asynqkey.Part) *redis.IntCmd { return p.LLen(ctx, asynqkey.Of(queue, part)) }
	size := func(part asynqkey.Part) *redis.IntCmd { return p.ZCard(ctx, asynqkey.Of(queue, part)) }
	r.pending, r.active = length(asynqkey.Pending), length(asynqkey.Active)
	r.scheduled, r.retry = size(asynqkey.Scheduled), size(asynqkey.Retry)
	r.archived, r.completed = size(asynqkey.Archived), size(asynqkey.Completed)
	r.paused = p.Exists(ctx, asynqkey.Of(queue, asynqkey.Paused))
	r.oldest = p.LIndex(ctx, asynqkey.Of(queue, asynqkey.Pending), -1)
}

func (r *statReplies) stats(queue string) Stats {
	return Stats{
		Queue: queue, Pending: r.pending.Val(), Active: r.active.Val(), Scheduled: r.scheduled.Val(), Retry: r.retry.Val(),
		Archived: r.archived.Val(), Completed: r.completed.Val(), Paused: r.paused.Val() == 1,
	}
}

// nanos parses a Unix time in nanoseconds. It returns the zero time if the text is not a number.
func nanos(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, n)
}
