package redistest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/internal/queue/asynqkey"
)

// LeaseOver is how far AgeLeases must move a fresh lease for asynq to take the
// task from its worker: 30 s lease, 30 s grace, and 1 s for whole-second scores.
const LeaseOver = 61 * time.Second

// age moves all scores of a sorted set down by ARGV[1] and counts them.
var age = redis.NewScript(`
local members = redis.call('ZRANGE', KEYS[1], 0, -1)
for _, m in ipairs(members) do redis.call('ZINCRBY', KEYS[1], -tonumber(ARGV[1]), m) end
return #members`)

// AgeLeases makes the leases of all active tasks of a queue older by d (rounded
// up to seconds) and says how many there are. With LeaseOver or more the tasks
// are recovered: put in retry as "task lease expired".
//
// The recoverer runs once when an asynq server starts and every 60 s after
// that, so a server that is started after the ageing recovers at once; one that
// is running already takes up to a minute. A worker that is alive writes its
// leases anew every 5 s: age those of dead or frozen workers.
func AgeLeases(ctx context.Context, rdb redis.UniversalClient, queue string, d time.Duration) (int, error) {
	return ageSet(ctx, rdb, asynqkey.Of(queue, asynqkey.Lease), d)
}

// AgeRetries makes the tasks that wait for a retry due sooner by d (rounded up
// to seconds) and says how many there are. They move to pending at the next
// tick of a server's DelayedTaskCheckInterval.
func AgeRetries(ctx context.Context, rdb redis.UniversalClient, queue string, d time.Duration) (int, error) {
	return ageSet(ctx, rdb, asynqkey.Of(queue, asynqkey.Retry), d)
}

// AgeScheduled does for scheduled tasks what AgeRetries does for retries.
func AgeScheduled(ctx context.Context, rdb redis.UniversalClient, queue string, d time.Duration) (int, error) {
	return ageSet(ctx, rdb, asynqkey.Of(queue, asynqkey.Scheduled), d)
}

func ageSet(ctx context.Context, rdb redis.UniversalClient, key string, d time.Duration) (int, error) {
	n, err := age.Run(ctx, rdb, []string{key}, int64(math.Ceil(d.Seconds()))).Int()
	if err != nil {
		return 0, fmt.Errorf("age %s: %w", key, err)
	}
	return n, nil
}

// Counts is how many tasks of a queue are in each of asynq's states.
type Counts struct{ Pending, Active, Scheduled, Retry, Archived, Completed int }

// Total is the number of tasks the queue knows.
func (c Counts) Total() int {
	return c.Pending + c.Active + c.Scheduled + c.Retry + c.Archived + c.Completed
}

// CountTasks reads the counts of a queue in one transaction: a task that moves
// meanwhile is counted once. A queue nobody ever used has none. (asynq's
// Inspector fails on such a queue and when a task ends while it looks.)
func CountTasks(ctx context.Context, rdb redis.UniversalClient, queue string) (Counts, error) {
	var c Counts
	into := []*int{&c.Pending, &c.Active, &c.Scheduled, &c.Retry, &c.Archived, &c.Completed}
	var replies []*redis.IntCmd
	_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, list := range []asynqkey.Part{asynqkey.Pending, asynqkey.Active} {
			replies = append(replies, p.LLen(ctx, asynqkey.Of(queue, list)))
		}
		for _, set := range []asynqkey.Part{asynqkey.Scheduled, asynqkey.Retry, asynqkey.Archived, asynqkey.Completed} {
			replies = append(replies, p.ZCard(ctx, asynqkey.Of(queue, set)))
		}
		return nil
	})
	if err != nil {
		return Counts{}, fmt.Errorf("count tasks of queue %s: %w", queue, err)
	}
	for i, r := range replies {
		*into[i] = int(r.Val())
	}
	return c, nil
}

// TaskState is the state asynq gives a task: pending, active, scheduled, retry,
// archived or completed; "" when the queue has no such task.
func TaskState(ctx context.Context, rdb redis.UniversalClient, queue, id string) (string, error) {
	state, err := rdb.HGet(ctx, asynqkey.Task(queue, id), "state").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read state of task %s: %w", strconv.Quote(id), err)
	}
	return state, nil
}
