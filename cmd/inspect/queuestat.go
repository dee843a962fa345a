package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// queueStat is a queue as it is at one moment.
type queueStat struct {
	Pending, Active, Scheduled, Retry, Archived, Completed int64
	Paused                                                 bool // asynq's flag
	OldestPending                                          time.Time
}

// waiting counts what still has to run.
func (q queueStat) waiting() int64 { return q.Pending + q.Scheduled + q.Retry }

func queueKey(queue, name string) string { return "asynq:{" + queue + "}:" + name }

// stat reads a queue in one transaction. asynq's own Inspector fails on a queue
// nobody has used yet, and when a task ends while it samples their memory.
func (s *session) stat(ctx context.Context, queue string) (queueStat, error) {
	var q queueStat
	into := []*int64{&q.Pending, &q.Active, &q.Scheduled, &q.Retry, &q.Archived, &q.Completed}
	var counts []*redis.IntCmd
	var flag *redis.IntCmd
	var oldest *redis.StringCmd
	_, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		counts = append(counts, p.LLen(ctx, queueKey(queue, "pending")), p.LLen(ctx, queueKey(queue, "active")))
		for _, set := range []string{"scheduled", "retry", "archived", "completed"} {
			counts = append(counts, p.ZCard(ctx, queueKey(queue, set)))
		}
		flag = p.Exists(ctx, queueKey(queue, "paused"))
		oldest = p.LIndex(ctx, queueKey(queue, "pending"), -1)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: nothing is pending
		return q, fmt.Errorf("read queue %s: %w", queue, err)
	}
	for i, c := range counts {
		*into[i] = c.Val()
	}
	q.Paused = flag.Val() == 1
	if id := oldest.Val(); id != "" {
		since, err := s.rdb.HGet(ctx, queueKey(queue, "t:"+id), "pending_since").Result()
		if n, perr := strconv.ParseInt(since, 10, 64); err == nil && perr == nil {
			q.OldestPending = time.Unix(0, n) // a task that left meanwhile has no age
		}
	}
	return q, nil
}

// flag reads asynq's pause flag.
func (s *session) flag(ctx context.Context, queue string) (bool, error) {
	n, err := s.rdb.Exists(ctx, queueKey(queue, "paused")).Result()
	if err != nil {
		return false, fmt.Errorf("read the pause flag of %s: %w", queue, err)
	}
	return n == 1, nil
}

// taskState is asynq's word for where a task is, "" when the queue has none.
func (s *session) taskState(ctx context.Context, queue, key string) (string, error) {
	state, err := s.rdb.HGet(ctx, queueKey(queue, "t:"+key), "state").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("look for a task in queue %s: %w", queue, err)
	}
	return state, nil
}
