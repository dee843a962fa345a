package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker/warn"
)

// Replayer runs tasks again that an account refusal archived before their source worked again, some per second.
// Its progress is in Redis, so any worker continues it. Run is called once.
type Replayer struct {
	Gates  *admission.Gates
	Queues *queue.Client
	Redis  redis.UniversalClient
	Store  Store
	Leader *Leader
	Log    *slog.Logger
	Warn   *warn.Limiter

	replayed map[string]int // queue → tasks that this worker replayed so far in the replay under way
}

const (
	replayInterval = time.Second
	// replayPage is how many tasks of a queue are replayed per interval.
	replayPage = 20
)

// Run replays while this worker leads, until ctx ends.
func (r *Replayer) Run(ctx context.Context) {
	r.replayed = map[string]int{}
	r.Leader.every(ctx, replayInterval, func(ctx context.Context) {
		names, err := r.Queues.Names(ctx)
		if err != nil {
			return // deliveries report that Redis is down
		}
		r.Warn.Warn(ctx, "halts", "the halts of the sources could not be read", r.startEnded(ctx, names))
		for _, name := range names {
			r.Warn.Warn(ctx, "replay", "archived tasks could not be replayed", r.replay(ctx, name))
		}
	})
}

// replay replays one page of a queue.
func (r *Replayer) replay(ctx context.Context, queue string) error {
	if err := r.finishStarted(ctx, queue); err != nil {
		return err
	}
	before, err := r.Redis.HGet(ctx, replayQueues, queue).Int64()
	if errors.Is(err, redis.Nil) {
		delete(r.replayed, queue) // another worker may have ended the replay
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the replay mark of %s: %w", queue, err)
	}
	done := 0
	for _, outcome := range tasks.AccountOutcomes {
		rows, err := r.Store.Tasks(ctx, store.TaskFilter{
			Queue: queue, Outcome: outcome, Replayable: true, Until: time.UnixMilli(before), Limit: replayPage - done,
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := r.one(ctx, row); err != nil {
				return err
			}
			done++
			r.replayed[queue]++
		}
		if done >= replayPage {
			return nil // the other tasks follow at the next tick
		}
	}
	started, err := r.started(ctx, queue)
	if err != nil || len(started) > 0 {
		return err // the started ones are checked again at the next tick
	}
	if err := r.Redis.HDel(ctx, replayQueues, queue).Err(); err != nil {
		return fmt.Errorf("end the replay of %s: %w", queue, err)
	}
	if n := r.replayed[queue]; n > 0 {
		r.Log.Info("replayed tasks archived for an account reason", "queue", queue, "tasks", n)
	}
	delete(r.replayed, queue)
	return nil
}

// one reopens a task and puts it back into its queue. It records the start first, so that any worker can finish
// what a crash interrupts.
func (r *Replayer) one(ctx context.Context, row store.TaskStatus) error {
	field := row.Queue + "/" + row.Key
	if err := r.Redis.HSet(ctx, replayStarted, field, 1).Err(); err != nil {
		return fmt.Errorf("note a replay: %w", err)
	}
	if _, err := r.Store.Reopen(ctx, row.Key, row.Generation); err != nil {
		return err
	}
	return r.requeue(ctx, field)
}

// finishStarted finishes replays that a crash interrupted, and those of tasks that were still active.
func (r *Replayer) finishStarted(ctx context.Context, queue string) error {
	started, err := r.started(ctx, queue)
	if err != nil {
		return err
	}
	for _, field := range started {
		if err := r.requeue(ctx, field); err != nil {
			return err
		}
	}
	return nil
}

// started returns the notes of a queue's unfinished replays.
func (r *Replayer) started(ctx context.Context, queue string) ([]string, error) {
	started, err := r.Redis.HKeys(ctx, replayStarted).Result()
	if err != nil {
		return nil, fmt.Errorf("read the unfinished replays: %w", err)
	}
	return slices.DeleteFunc(started, func(field string) bool { return !strings.HasPrefix(field, queue+"/") }), nil
}

// requeue puts a reopened task back into its queue and removes its note. The note of an active task stays for
// the next tick. A task that has finished since needs nothing more.
func (r *Replayer) requeue(ctx context.Context, field string) error {
	name, key, _ := strings.Cut(field, "/")
	st, err := r.Store.TaskStatus(ctx, key)
	if err != nil {
		return err
	}
	if !st.Finished {
		found, err := requeue(ctx, r.Queues, r.Store, name, key)
		switch {
		case errors.Is(err, tasks.ErrMalformed): // it must not keep the others from their replay
			r.Log.Error("a reopened task cannot be queued: its payload in the store cannot be read", "task_id", key, "error", err)
		case err != nil || found == queue.Active:
			return err
		}
	}
	if err := r.Redis.HDel(ctx, replayStarted, field).Err(); err != nil {
		return fmt.Errorf("end a replay: %w", err)
	}
	return nil
}

// start begins a replay of the tasks of a queue that are archived until now.
func (r *Replayer) start(ctx context.Context, queue string) error {
	if err := r.Redis.HSet(ctx, replayQueues, queue, strconv.FormatInt(time.Now().UnixMilli(), 10)).Err(); err != nil {
		return fmt.Errorf("start the replay of %s: %w", queue, err)
	}
	return nil
}

// startEnded starts the replays of halts that have ended, which means that the source answered a call. A
// half-open source may be refused again, and with two refused tokens each would replay the other's tasks
// indefinitely.
func (r *Replayer) startEnded(ctx context.Context, queues []string) error {
	state, err := r.Gates.State(ctx)
	if err != nil {
		return err
	}
	seen, err := r.Redis.HGetAll(ctx, replayHalts).Result()
	if err != nil {
		return fmt.Errorf("read which halts were replayed: %w", err)
	}
	for _, src := range state.Sources {
		field, began := src.Source+"/"+string(src.Path), strconv.FormatInt(src.LastHalt.UnixMilli(), 10)
		own := slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return !src.Path.Owns(queue) })
		if src.Halt != "" {
			if err := r.probe(ctx, src, own); err != nil {
				return err
			}
			continue
		}
		if src.LastHalt.IsZero() || seen[field] == began {
			continue
		}
		for _, queue := range own {
			if err := r.start(ctx, queue); err != nil {
				return err
			}
		}
		if err := r.Redis.HSet(ctx, replayHalts, field, began).Err(); err != nil {
			return fmt.Errorf("note the end of a halt: %w", err)
		}
	}
	return nil
}

// probe puts one archived task back into its queue if its halted source may be probed and no pending task can do
// it.
func (r *Replayer) probe(ctx context.Context, src admission.SourceState, queues []string) error {
	stats, err := r.Queues.AllStats(ctx, queues)
	if err != nil {
		return err
	}
	for _, s := range stats {
		if s.Pending+s.Active > 0 {
			return nil
		}
	}
	for _, queue := range queues {
		_, group, err := tasks.SplitQueue(queue)
		if err != nil {
			return err
		}
		sources, err := r.Gates.Check(ctx, src.Path, group, 1)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(sources, func(c admission.SourceCheck) bool { return c.Source == src.Source && c.Probe }) {
			continue
		}
		for _, outcome := range tasks.AccountOutcomes {
			rows, err := r.Store.Tasks(ctx, store.TaskFilter{Queue: queue, Outcome: outcome, Source: src.Source, Replayable: true, Limit: 1})
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				r.Log.Info("an archived task is run again to probe its halted source", "source", src.Source, "queue", queue, "task_id", rows[0].Key)
				return r.one(ctx, rows[0])
			}
		}
	}
	return nil
}
