package upkeep

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
// began whose end was followed by a replay. No TTL.
const replayHalts = "reprise:{replay}:halts"

// startEnded starts the replays of halts that have ended: the source has
// answered a call. A half-open source does not count, since it may be refused
// again, and two bad tokens would replay each other's refusals indefinitely.
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
		own := queuesOf(src.Path, queues)
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

func queuesOf(path tasks.Path, queues []string) []string {
	return slices.DeleteFunc(slices.Clone(queues), func(queue string) bool {
		p, _, err := tasks.SplitQueue(queue)
		return err != nil || p != path
	})
}

// probe puts one archived task back when its halted source may be probed and
// no waiting task can do it.
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
			rows, err := r.Archive.Tasks(ctx, store.TaskFilter{Queue: queue, Outcome: outcome, Source: src.Source, Replayable: true, Limit: 1})
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				r.Log.Info("an archived task probes its source", "source", src.Source, "queue", queue, "task_id", rows[0].Key)
				return r.one(ctx, rows[0])
			}
		}
	}
	return nil
}
