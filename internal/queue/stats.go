package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/internal/queue/asynqkey"
)

// Stats counts the tasks of a queue by asynq's states.
type Stats struct {
	Queue                                                  string
	Pending, Active, Scheduled, Retry, Archived, Completed int64
	Paused                                                 bool      // asynq's flag
	OldestPending                                          time.Time // zero = nothing is pending, or asynq did not note since when
}

// Waiting counts the tasks that are not running yet and will.
func (s Stats) Waiting() int64 { return s.Pending + s.Scheduled + s.Retry }

// Stats reads one queue. A queue that was never used has none of anything.
func (c *Client) Stats(ctx context.Context, queue string) (Stats, error) {
	all, err := c.AllStats(ctx, []string{queue})
	if err != nil {
		return Stats{}, err
	}
	return all[0], nil
}

// AllStats reads queues in two round trips, each as it is at one moment. asynq's Inspector fails for a queue that was
// never used, and when a task ends while it samples the queue's memory.
func (c *Client) AllStats(ctx context.Context, queues []string) ([]Stats, error) {
	out := make([]Stats, len(queues))
	if len(queues) == 0 {
		return out, nil
	}
	replies := make([]statReplies, len(queues))
	_, err := c.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, queue := range queues {
			replies[i].ask(ctx, p, queue)
		}
		return nil
	})
	if err != nil && !none(err) { // none: nothing is pending
		return nil, fmt.Errorf("count the tasks of the queues: %w", err)
	}
	since := make([]*redis.StringCmd, len(queues))
	_, err = c.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, queue := range queues {
			if id := replies[i].oldest.Val(); id != "" {
				since[i] = p.HGet(ctx, asynqkey.Task(queue, id), "pending_since")
			}
		}
		return nil
	})
	if err != nil && !none(err) { // none: the task has left meanwhile
		return nil, fmt.Errorf("read the age of the oldest pending task: %w", err)
	}
	for i, queue := range queues {
		out[i] = replies[i].stats(queue)
		if since[i] != nil {
			out[i].OldestPending = nanos(since[i].Val())
		}
	}
	return out, nil
}

// Paused reads asynq's pause flag.
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

func (r *statReplies) ask(ctx context.Context, p redis.Pipeliner, queue string) {
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

// nanos reads a Unix time in nanoseconds; zero if there is none.
func nanos(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, n)
}
