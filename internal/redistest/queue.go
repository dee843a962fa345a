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

// age lowers all scores of a sorted set by ARGV[1] and returns their number.
var age = redis.NewScript(`
local members = redis.call('ZRANGE', KEYS[1], 0, -1)
for _, m in ipairs(members) do redis.call('ZINCRBY', KEYS[1], -tonumber(ARGV[1]), m) end
return #members`)

// leaseOver is the age of a lease at which asynq delivers its task again: 30 s of lease, 30 s of grace, and 1 s
// because scores are whole seconds.
const leaseOver = 61 * time.Second

// ExpireLeases ends the leases of all active tasks of a queue and returns their number. asynq then recovers the
// tasks: they move to retry as "task lease expired". An asynq server recovers tasks when it starts and every 60 s.
// A running worker extends its leases every 5 s, so ExpireLeases works for workers that are killed or stopped.
func ExpireLeases(ctx context.Context, rdb redis.UniversalClient, queue string) (int, error) {
	return ageSet(ctx, rdb, asynqkey.Of(queue, asynqkey.Lease), leaseOver)
}

// AgeRetries makes the retries of a queue due sooner by d (rounded up to seconds) and returns their number.
// Due tasks become pending at the next DelayedTaskCheckInterval of a server.
func AgeRetries(ctx context.Context, rdb redis.UniversalClient, queue string, d time.Duration) (int, error) {
	return ageSet(ctx, rdb, asynqkey.Of(queue, asynqkey.Retry), d)
}

func ageSet(ctx context.Context, rdb redis.UniversalClient, key string, d time.Duration) (int, error) {
	n, err := age.Run(ctx, rdb, []string{key}, int64(math.Ceil(d.Seconds()))).Int()
	if err != nil {
		return 0, fmt.Errorf("age %s: %w", key, err)
	}
	return n, nil
}

// Counts are the numbers of tasks of a queue in each of asynq's states.
type Counts struct{ Pending, Active, Scheduled, Retry, Archived, Completed int }

// Total returns the number of all tasks in the queue.
func (c Counts) Total() int {
	return c.Pending + c.Active + c.Scheduled + c.Retry + c.Archived + c.Completed
}

// CountTasks reads the counts of a queue in one transaction, so that a task that moves is counted once. All
// counts are 0 for an unknown queue, for which asynq's Inspector returns an error.
func CountTasks(ctx context.Context, rdb redis.UniversalClient, queue string) (Counts, error) {
	p := rdb.TxPipeline()
	list := func(part asynqkey.Part) *redis.IntCmd { return p.LLen(ctx, asynqkey.Of(queue, part)) }
	set := func(part asynqkey.Part) *redis.IntCmd { return p.ZCard(ctx, asynqkey.Of(queue, part)) }
	pending, active, scheduled := list(asynqkey.Pending), list(asynqkey.Active), set(asynqkey.Scheduled)
	retry, archived, completed := set(asynqkey.Retry), set(asynqkey.Archived), set(asynqkey.Completed)
	if _, err := p.Exec(ctx); err != nil {
		return Counts{}, fmt.Errorf("count tasks of queue %s: %w", queue, err)
	}
	return Counts{
		Pending: int(pending.Val()), Active: int(active.Val()), Scheduled: int(scheduled.Val()),
		Retry: int(retry.Val()), Archived: int(archived.Val()), Completed: int(completed.Val()),
	}, nil
}

// TaskState returns asynq's state of a task: pending, active, scheduled, retry, archived or completed; "" if
// the queue has no such task.
func TaskState(ctx context.Context, rdb redis.UniversalClient, queue, id string) (string, error) {
	state, err := rdb.HGet(ctx, asynqkey.Task(queue, id), "state").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read state of task %s: %w", strconv.Quote(id), err)
	}
	return state, nil
}
