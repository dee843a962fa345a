package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
)

// waitingChunk bounds the tasks that are looked for in the queue at once.
const waitingChunk = 1000

// tryRedis opens Redis for a command that is only better with it; false, with a
// word about it, if it is not there.
func (s *session) tryRedis(ctx context.Context) bool {
	if s.rdb != nil {
		return true
	}
	url, _, err := s.addresses()
	if err == nil {
		err = s.openRedis(ctx, url)
	}
	if err != nil {
		fmt.Fprintf(s.std.err, "inspect: what the waiting ones wait for is not shown: %s\n", sentence(err))
	}
	return err == nil
}

// waitReasons says of unfinished tasks what they wait for, as why does, from a
// handful of questions: what only one task knows (its place in line, its permit)
// is left out.
func (s *session) waitReasons(ctx context.Context, rows []store.TaskRow) (map[string]cause, error) {
	out := map[string]cause{}
	var waiting []store.TaskRow
	for _, r := range rows {
		if !r.Finished {
			waiting = append(waiting, r)
		}
	}
	if len(waiting) == 0 || !s.tryRedis(ctx) {
		return out, nil
	}
	g, err := s.gates(ctx)
	if err != nil {
		return nil, err
	}
	state, err := g.State(ctx)
	if err != nil {
		return nil, err
	}
	queues := map[string]evidence{}
	for len(waiting) > 0 {
		chunk := waiting[:min(waitingChunk, len(waiting))]
		waiting = waiting[len(chunk):]
		chunk, places, err := s.locate(ctx, g, chunk)
		if err != nil {
			return nil, err
		}
		for i, r := range chunk {
			e, ok := queues[r.Queue]
			if !ok {
				if e, err = s.queueEvidence(ctx, r.Queue, state); err != nil {
					return nil, err
				}
				queues[r.Queue] = e
			}
			e.key, e.lastErr = r.Key, r.Reason
			e.standing = store.TaskStatus{Known: true, Queue: r.Queue, Generation: r.Generation}
			e.state, e.nextTry = places[i].state, places[i].due
			out[r.Key] = s.because(e)
		}
	}
	return out, nil
}

// queueEvidence is what all tasks of a queue have in common.
func (s *session) queueEvidence(ctx context.Context, queue string, state admission.State) (evidence, error) {
	e := evidence{now: time.Now(), queue: queue, ahead: -1, brief: true}
	path, group, err := tasks.SplitQueue(queue)
	if err != nil {
		return e, err
	}
	e.group, e.snapshot.Path, e.snapshot.State = group, path, state
	e.snapshot.State.Sources = serving(state, queue)
	if e.stat, err = s.stat(ctx, queue); err != nil {
		return e, err
	}
	if e.pause, err = s.pauseState(ctx, queue); err != nil {
		return e, err
	}
	e.workers, err = s.serving(queue)
	return e, err
}

// place is where a task is in its queue.
type place struct {
	state string    // asynq's word; "" = it is not there
	due   time.Time // of a retry or scheduled task
}

// locate finds tasks in their queues. One that is not in its own may be in
// another group's: those who enqueue it again pay for it there.
func (s *session) locate(ctx context.Context, g *gates, rows []store.TaskRow) ([]store.TaskRow, []place, error) {
	places, err := s.places(ctx, rows)
	if err != nil {
		return nil, nil, err
	}
	queues, err := s.queues(g)
	if err != nil {
		return nil, nil, err
	}
	rows = slices.Clone(rows)
	for _, queue := range queues {
		var lost []int
		var moved []store.TaskRow
		for i, r := range rows {
			if path, _, err := tasks.SplitQueue(queue); err == nil && places[i].state == "" && path == r.Path && queue != r.Queue {
				r.Queue = queue
				lost, moved = append(lost, i), append(moved, r)
			}
		}
		found, err := s.places(ctx, moved)
		if err != nil {
			return nil, nil, err
		}
		for j, i := range lost {
			if found[j].state != "" {
				rows[i], places[i] = moved[j], found[j]
			}
		}
	}
	return rows, places, nil
}

// places looks for tasks in their queues, in one round trip.
func (s *session) places(ctx context.Context, rows []store.TaskRow) ([]place, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	states := make([]*redis.StringCmd, len(rows))
	due := make([][2]*redis.FloatCmd, len(rows))
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, r := range rows {
			states[i] = p.HGet(ctx, queueKey(r.Queue, "t:"+r.Key), "state")
			for j, set := range []string{"retry", "scheduled"} {
				due[i][j] = p.ZScore(ctx, queueKey(r.Queue, set), r.Key)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("look for tasks in their queues: %w", err)
	}
	out := make([]place, len(rows))
	for i := range rows {
		out[i].state = states[i].Val()
		for _, score := range due[i] {
			if at := score.Val(); at > 0 {
				out[i].due = time.Unix(int64(at), 0)
			}
		}
	}
	return out, nil
}
