package worker

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
)

// replayHalts is a hash: "<source>/<path>" → Unix ms at which the last halt
// began whose end was seen and followed by a replay. No TTL.
const replayHalts = "reprise:{replay}:halts"

// halts begins the replays of what a halt archived, once its source has
// answered a call again: a source that is merely half-open may be refused once
// more, and two dead tokens would replay each other's refusals for ever.
func (r *replays) halts(ctx context.Context, queues []string) error {
	state, err := r.w.gates.State(ctx)
	if err != nil {
		return err
	}
	seen, err := r.rdb.HGetAll(ctx, replayHalts).Result()
	if err != nil {
		return fmt.Errorf("read which halts were replayed: %w", err)
	}
	for _, src := range state.Sources {
		field, began := src.Source+"/"+string(src.Path), strconv.FormatInt(src.LastHalt.UnixMilli(), 10)
		mine := queuesOf(src.Path, queues)
		if src.Halt != "" {
			if err := r.probe(ctx, src, mine); err != nil {
				return err
			}
			continue
		}
		if src.LastHalt.IsZero() || seen[field] == began {
			continue
		}
		for _, queue := range mine {
			if err := r.begin(ctx, queue); err != nil {
				return err
			}
		}
		if err := r.rdb.HSet(ctx, replayHalts, field, began).Err(); err != nil {
			return fmt.Errorf("note the end of a halt: %w", err)
		}
	}
	return nil
}

func queuesOf(path tasks.Path, queues []string) []string {
	return slices.DeleteFunc(slices.Clone(queues), func(queue string) bool {
		p, _, err := tasks.SplitQueue(queue)
		return err != nil || p != path
	})
}

// probe puts one archived task back when its halted source may be probed and
// no task waits that could do it.
func (r *replays) probe(ctx context.Context, src admission.SourceState, queues []string) error {
	for _, queue := range queues {
		n, err := r.waiting(ctx, queue)
		if err != nil || n > 0 {
			return err
		}
	}
	for _, queue := range queues {
		_, group, err := tasks.SplitQueue(queue)
		if err != nil {
			return err
		}
		openings, err := r.w.gates.Check(ctx, src.Path, group, 1)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(openings, func(o admission.SourceCheck) bool { return o.Source == src.Source && o.Probe }) {
			continue
		}
		for _, outcome := range tasks.AccountOutcomes {
			rows, err := r.w.records.Tasks(ctx, store.TaskFilter{Queue: queue, Outcome: outcome, Source: src.Source, Replayable: true, Limit: 1})
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				r.w.log.Info("an archived task probes its source", "source", src.Source, "queue", queue, "task_id", rows[0].Key)
				return r.one(ctx, rows[0])
			}
		}
	}
	return nil
}

// waiting counts the tasks of a queue that will be delivered by themselves
// soon, or are.
func (r *replays) waiting(ctx context.Context, queue string) (int64, error) {
	var n int64
	for _, list := range []string{"pending", "active"} {
		some, err := r.rdb.LLen(ctx, "asynq:{"+queue+"}:"+list).Result()
		if err != nil {
			return 0, fmt.Errorf("count the tasks of %s: %w", queue, err)
		}
		n += some
	}
	return n, nil
}
