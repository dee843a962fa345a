package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
)

// evidence is all that is known of one task at one moment.
type evidence struct {
	key      string
	now      time.Time
	standing store.TaskStatus
	subs     []store.BatchRow
	calls    []store.Call
	input    string // where its audio is; URLs without query
	pinned   string // source it must go to; "" = any
	units    int64  // of its call, at most; 0 = not known
	brief    bool   // gathered for a list: without place in line, record and permit

	queue   string // where it is, else where it belongs
	group   string
	state   string // asynq's word; "" = not in any queue
	lastErr string
	nextTry time.Time // of a retry or scheduled task
	since   time.Time // pending since
	ahead   int64     // pending tasks that go before it; -1 = not pending or not known

	stat     queueStat
	pause    admission.PauseState
	workers  int // that serve its queue
	snapshot admission.TaskState
}

func (e evidence) path() tasks.Path { return e.snapshot.Path }

// finished reports whether the task has its verdict.
func (e evidence) finished() bool { return e.standing.Known && e.standing.Finished }

// usable are the sources the task may go to.
func (e evidence) usable() []admission.SourceState {
	return slices.DeleteFunc(slices.Clone(e.snapshot.State.Sources), func(st admission.SourceState) bool {
		return e.pinned != "" && st.Source != e.pinned
	})
}

// groupState is that of the task's group, nil if the gates have none.
func (e evidence) groupState() *admission.GroupState {
	for i, g := range e.snapshot.State.Groups {
		if e.group != "" && g.Name == e.group {
			return &e.snapshot.State.Groups[i]
		}
	}
	return nil
}

// gather reads the evidence about a key.
func (s *session) gather(ctx context.Context, g *gates, key string) (evidence, error) {
	e := evidence{key: key, now: time.Now(), ahead: -1}
	var err error
	if e.snapshot, err = g.TaskState(ctx, key); err != nil {
		return e, err
	}
	if err := s.fromStore(ctx, &e); err != nil {
		return e, err
	}
	if err := s.fromQueue(ctx, &e); err != nil {
		return e, err
	}
	if _, e.group, err = tasks.SplitQueue(e.queue); err != nil {
		return e, err
	}
	if group := e.groupState(); group != nil && e.pinned == "" {
		e.pinned = group.Source
	}
	if e.stat, err = s.stat(ctx, e.queue); err != nil {
		return e, err
	}
	if e.pause, err = s.pauseState(ctx, e.queue); err != nil {
		return e, err
	}
	e.workers, err = s.serving(e.queue)
	return e, err
}

func (s *session) fromStore(ctx context.Context, e *evidence) error {
	var err error
	if e.standing, err = s.store.TaskStatus(ctx, e.key); err != nil {
		return err
	}
	if e.subs, err = s.store.Submissions(ctx, store.SubmissionFilter{Key: e.key}); err != nil {
		return err
	}
	if e.calls, err = s.store.Calls(ctx, store.CallFilter{Key: e.key}); err != nil {
		return err
	}
	p, ok, err := s.payload(ctx, e.key, e.path())
	if err != nil || !ok {
		return err
	}
	e.pinned = p.Params.Source
	e.units, _ = p.Units(false)
	if e.input = p.Input.Path; p.Input.Kind == tasks.URLInput {
		e.input = tasks.RedactURL(p.Input.URL)
	}
	return nil
}

// fromQueue finds the task in the queues it may be in.
func (s *session) fromQueue(ctx context.Context, e *evidence) error {
	queues := []string{e.standing.Queue}
	for _, sub := range slices.Backward(e.subs) {
		queues = append(queues, sub.Submission.Queue)
	}
	queues = append(queues, e.path().Queue(e.snapshot.Group), e.path().Queue(""))
	queues = slices.DeleteFunc(queues, func(q string) bool { return q == "" })
	e.queue = queues[0]
	for i, queue := range queues {
		if slices.Contains(queues[:i], queue) {
			continue
		}
		info, err := s.asynq.GetTaskInfo(queue, e.key)
		if errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for the task in queue %s: %w", queue, err)
		}
		e.queue, e.state, e.lastErr = queue, info.State.String(), info.LastErr
		if info.State == asynq.TaskStateRetry || info.State == asynq.TaskStateScheduled {
			e.nextTry = info.NextProcessAt
		}
		if info.State == asynq.TaskStatePending {
			return s.fromPending(ctx, e)
		}
		return nil
	}
	return nil
}

// fromPending finds how long the task is pending, and how many go before it:
// asynq pushes at the head of the list and takes from its tail.
func (s *session) fromPending(ctx context.Context, e *evidence) error {
	since, err := s.rdb.HGet(ctx, queueKey(e.queue, "t:"+e.key), "pending_since").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("read since when the task is pending: %w", err)
	}
	if n, err := strconv.ParseInt(since, 10, 64); err == nil {
		e.since = time.Unix(0, n)
	}
	list := queueKey(e.queue, "pending")
	at, err := s.rdb.LPos(ctx, list, e.key, redis.LPosArgs{Rank: -1}).Result()
	if errors.Is(err, redis.Nil) {
		return nil // it has just left
	}
	if err != nil {
		return fmt.Errorf("count the tasks before it: %w", err)
	}
	total, err := s.rdb.LLen(ctx, list).Result()
	if err != nil {
		return fmt.Errorf("count the tasks before it: %w", err)
	}
	e.ahead = max(0, total-1-at)
	return nil
}

// serving counts the workers that serve a queue; each may have several servers.
func (s *session) serving(queue string) (int, error) {
	servers, err := s.asynq.Servers()
	if err != nil {
		return 0, fmt.Errorf("look for workers: %w", err)
	}
	type process struct {
		host string
		pid  int
	}
	workers := map[process]bool{}
	for _, srv := range servers {
		if _, ok := srv.Queues[queue]; ok {
			workers[process{srv.Host, srv.PID}] = true
		}
	}
	return len(workers), nil
}
