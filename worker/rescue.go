package worker

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"reprise/retrypolicy"
	"reprise/tasks"
)

// minMaxRetry is the MaxRetry below which asynq, not the policy, might end a
// task: asynq archives even a snoozed task once Retried ≥ MaxRetry, before it
// asks IsFailure (asynq v0.26.0 processor.go:340). Tasks of this module's own
// producers are far above; one enqueued by hand may not be.
const minMaxRetry = 1000

// rescues mends tasks that were enqueued with limits under which asynq would
// decide. A delivery of such a task is noted; when asynq has archived it
// although the verdict was retry or snooze, it is moved to the retry set with
// the limits of our own producers. The note is in Redis, so any worker mends
// what a crashed one noted. Safe for concurrent use.
type rescues struct {
	rdb  redis.UniversalClient
	warn *warner
	kick chan struct{}
	now  func() time.Time
}

// rescueNotes is a hash: "<queue>/<task id>" → when the task is due (Unix s).
const rescueNotes = "reprise:{rescue}:notes"

//go:embed rescue.lua
var rescueLua string

var rescueScript = redis.NewScript(rescueLua)

// note remembers (or, after a final verdict, forgets) a delivery of a frail
// task before asynq hears of it.
func (r *rescues) note(ctx context.Context, d *delivery, a *answer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outboxTimeout)
	defer cancel()
	field := d.queue + "/" + d.id
	var err error
	if ends(a.verdict) {
		err = r.rdb.HDel(ctx, rescueNotes, field).Err()
	} else {
		due := r.now().Add(retrypolicy.WholeSeconds(a.delay)).Unix()
		err = r.rdb.HSet(ctx, rescueNotes, field, due).Err()
	}
	if err != nil {
		r.warn.do("rescue", "a task with a low MaxRetry could not be noted", err)
		return
	}
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// begin notes a frail task before its call, so that it is mended even if its
// worker dies and asynq's recoverer archives it.
func (r *rescues) begin(ctx context.Context, d *delivery) {
	r.note(ctx, d, &answer{verdict: tasks.Retry, delay: lostDelay})
}

// Pace of the mending: soon after a note of our own, seldom otherwise.
const (
	rescueSoon  = 200 * time.Millisecond
	rescueEvery = 10 * time.Second
)

func (r *rescues) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.kick:
			timer.Reset(rescueSoon)
			continue
		case <-timer.C:
		}
		left, err := r.sweep(ctx)
		if err != nil && ctx.Err() == nil {
			r.warn.do("rescue", "tasks with a low MaxRetry could not be mended", err)
		}
		if left > 0 {
			timer.Reset(rescueSoon * 5)
		} else {
			timer.Reset(rescueEvery)
		}
	}
}

// sweep mends what is noted and returns how many notes are left.
func (r *rescues) sweep(ctx context.Context) (left int, err error) {
	notes, err := r.rdb.HGetAll(ctx, rescueNotes).Result()
	if err != nil {
		return 0, fmt.Errorf("read the rescue notes: %w", err)
	}
	for field, due := range notes {
		queue, id, ok := strings.Cut(field, "/")
		path, _, err := tasks.SplitQueue(queue)
		if !ok || err != nil {
			r.rdb.HDel(ctx, rescueNotes, field)
			continue
		}
		mended, err := r.mend(ctx, path, queue, id, due)
		if err != nil {
			return left, err
		}
		if !mended {
			left++
			continue
		}
		if err := r.rdb.HDel(ctx, rescueNotes, field).Err(); err != nil {
			return left, fmt.Errorf("forget a rescue note: %w", err)
		}
	}
	return left, nil
}

// mend is false while the task is still being delivered.
func (r *rescues) mend(ctx context.Context, path tasks.Path, queue, id, due string) (bool, error) {
	prefix := "asynq:{" + queue + "}:"
	keys := []string{prefix + "t:" + id, prefix + "archived", prefix + "retry"}
	n, err := rescueScript.Run(ctx, r.rdb, keys, id, due, limitsPatch(path)).Int()
	if err != nil {
		return false, fmt.Errorf("mend a task with a low MaxRetry: %w", err)
	}
	return n != 0, nil
}

// limitsPatch is a piece of asynq's TaskMessage that, appended to an encoded
// message, overrides its limits: in protobuf the last value of a scalar field
// wins. Fields as in asynq v0.26.0 internal/proto/asynq.proto: 5 retry,
// 8 timeout, 9 deadline, 12 retention. A test compares it with a message that
// asynq itself wrote.
func limitsPatch(path tasks.Path) string {
	var b []byte
	field := func(n protowire.Number, v uint64) {
		b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	field(5, uint64(tasks.MaxRetry))
	field(8, uint64(path.Timeout()/time.Second))
	field(9, 0)
	field(12, uint64(tasks.Retention/time.Second))
	return string(b)
}
