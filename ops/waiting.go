package ops

import (
	"context"
	"slices"

	"reprise/internal/queue"
	"reprise/store"
	"reprise/tasks"
)

// queueEvidence reads the evidence that all tasks of a queue share, once per queue.
type queueEvidence struct {
	*survey
	workers []queue.Worker
	known   map[string]Evidence
}

func (b *base) newQueueEvidence(ctx context.Context) (*queueEvidence, error) {
	v, err := b.survey(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := b.queue.Workers(ctx)
	return &queueEvidence{v, workers, map[string]Evidence{}}, err
}

// of returns the evidence of a queue, without the evidence of a task.
func (q *queueEvidence) of(ctx context.Context, name string) (Evidence, error) {
	if e, ok := q.known[name]; ok {
		return e, nil
	}
	e := Evidence{Queue: name, Ahead: -1, InList: true}
	path, group, err := tasks.SplitQueue(name)
	if err != nil {
		return e, err
	}
	e.Group, e.Gates.Path, e.Gates.State = group, path, q.state
	e.Gates.State.Sources = serving(q.state, name)
	if e.Stats, err = q.queue.Stats(ctx, name); err != nil {
		return e, err
	}
	if e.Pause, err = q.queue.PauseState(ctx, name); err != nil {
		return e, err
	}
	e.Pause = withKnownEnds(e.Pause, e.Gates.State.Sources)
	for _, w := range q.workers {
		if w.Serves(name) {
			e.Workers++
		}
	}
	q.known[name] = e
	return e, nil
}

// locate finds tasks in their queues. If a task is not in its own queue, it looks in the path's other queues, because
// another group may have enqueued the task.
func (q *queueEvidence) locate(ctx context.Context, rows []store.TaskStatus) ([]queue.Task, error) {
	out := make([]queue.Task, len(rows))
	missing := make([]int, len(rows))
	for i, r := range rows {
		out[i].Queue, missing[i] = r.Queue, i
	}
	look := func(name func(r store.TaskStatus) string, which []int) error {
		refs := make([]queue.Ref, len(which))
		for j, i := range which {
			refs[j] = queue.Ref{Queue: name(rows[i]), ID: rows[i].Key}
		}
		found, err := q.queue.Tasks(ctx, refs)
		for j, i := range which {
			if err == nil && found[j].State != queue.NotQueued {
				out[i] = found[j]
			}
		}
		return err
	}
	if err := look(func(r store.TaskStatus) string { return r.Queue }, missing); err != nil {
		return nil, err
	}
	for _, other := range q.queues {
		which := slices.DeleteFunc(slices.Clone(missing), func(i int) bool {
			return out[i].State != queue.NotQueued || !serves(rows[i].Path, other) || rows[i].Queue == other
		})
		if err := look(func(store.TaskStatus) string { return other }, which); err != nil {
			return nil, err
		}
	}
	return out, nil
}
