package intake

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/store"
	"reprise/tasks"
)

const (
	// registerChunk is the number of items that one store transaction registers.
	registerChunk = 200
	// uploadChunk is smaller, because workers cannot latch while the ledger claims.
	uploadChunk = 50
	// enqueuers is the number of goroutines that enqueue. Each waits for its round trips to Redis; more goroutines are
	// not faster.
	enqueuers = 16
	// storeTimeout limits how long claiming and registering one chunk may take.
	storeTimeout = 30 * time.Second
	// redisTimeout is how long an enqueue waits for Redis without any progress.
	redisTimeout = 10 * time.Second
)

// Enqueue registers the inputs of a plan in the store and queues them in chunks; it updates the items. When ctx
// ends, it finishes the current chunk, leaves the rest at ToQueue and returns the error of ctx. What was queued
// stays queued, and enqueuing the same inputs again continues. An input that cannot be queued is Failed and does
// not stop the others. An error means that store or ledger failed and that the rest was not tried. progress may be
// nil; several goroutines call it.
func (in *Intake) Enqueue(ctx context.Context, plan *Plan, progress func(Progress)) error {
	if in.queues == nil {
		return errors.New("enqueue: Options.Redis is missing")
	}
	var rest []int
	for i := range plan.Items {
		switch it := &plan.Items[i]; it.Status {
		case Failed:
			it.Status, it.Reason = ToQueue, ""
			if it.first != nil {
				it.Status = SameContent
			}
			rest = append(rest, i)
		case ToQueue, AlreadyQueued, AlreadyDone, SameContent:
			rest = append(rest, i)
		case Queued, Refused: // decided
		}
	}
	total := len(rest)
	var done atomic.Int64
	step := func() {
		if n := done.Add(1); progress != nil {
			progress(Progress{Done: int(n), Total: total})
		}
	}
	size := registerChunk
	if plan.Request.Path == tasks.Upload {
		size = uploadChunk
	}
	for len(rest) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("enqueue: %w", context.Cause(ctx))
		}
		chunk := rest[:min(size, len(rest))]
		rest = rest[len(chunk):]
		if err := in.enqueueChunk(context.WithoutCancel(ctx), plan, chunk, step); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
	}
	for i := range plan.Items {
		if it := &plan.Items[i]; it.Status == SameContent {
			it.shareStatus(it.first)
		}
	}
	return nil
}

// enqueueChunk registers the tasks before it enqueues them. If the process dies in between, they are unfinished in
// the store and the next run enqueues them.
func (in *Intake) enqueueChunk(ctx context.Context, plan *Plan, chunk []int, step func()) error {
	sctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if plan.Request.Path == tasks.Upload {
		var err error
		if chunk, err = in.claim(sctx, plan, chunk, step); err != nil {
			return err
		}
	}
	submissions := make([]store.Submission, len(chunk))
	for n, i := range chunk {
		var err error
		if submissions[n], err = in.submission(plan, i); err != nil {
			return err
		}
	}
	statuses, err := in.opts.Store.Register(sctx, submissions)
	if err != nil {
		return err
	}
	deadline := newDeadline()
	var group errgroup.Group
	group.SetLimit(enqueuers)
	for n, i := range chunk {
		it := &plan.Items[i]
		group.Go(func() error {
			defer step()
			if it.Status != ToQueue {
				return nil
			}
			rctx, cancel := deadline.context(ctx)
			defer cancel()
			if in.put(rctx, it, statuses[n], plan); it.Status != Failed {
				deadline.extend()
			}
			return nil
		})
	}
	return group.Wait()
}

func (in *Intake) submission(plan *Plan, i int) (store.Submission, error) {
	it := &plan.Items[i]
	task, err := it.Payload.Task(it.group)
	if err != nil {
		return store.Submission{}, err
	}
	return store.Submission{
		ID:      plan.submissionID(i),
		Batch:   plan.Batch,
		Key:     it.Payload.Key,
		Path:    it.Payload.Path,
		Queue:   it.queue(),
		Name:    it.Name,
		Payload: task.Payload(),
		At:      in.opts.Now(),
		Cached:  it.Status == AlreadyDone,
		Fresh:   it.reopen,

		ExternalID: it.ExternalID, Metadata: it.Metadata,
	}, nil
}

// put queues one registered item. The store may have settled its task since the plan was made.
func (in *Intake) put(ctx context.Context, it *Item, st store.TaskStatus, plan *Plan) {
	in.decide(it, st, plan.Request)
	if it.Status != ToQueue {
		return
	}
	var err error
	switch {
	case st.Finished && it.sendAgain:
		err = in.sendAgain(ctx, it, st, plan)
	case st.Finished:
		err = in.reopen(ctx, it, st)
	default:
		it.reopen = it.reopen || plan.Request.Force
		err = in.enqueue(ctx, it, st)
	}
	if err = it.refuseOr(err); err != nil {
		it.Status, it.Reason = Failed, "could not be queued: "+err.Error()
	}
}

// deadline is redisTimeout after the last successful enqueue of a chunk: a slow Redis gets as long as it makes
// progress, an unreachable one costs redisTimeout once and not for each item. Safe for concurrent use.
type deadline struct {
	start time.Time
	last  atomic.Int64 // of the last success, in ns since start
}

func newDeadline() *deadline { return &deadline{start: time.Now()} }

func (d *deadline) extend() { d.last.Store(int64(time.Since(d.start))) }

func (d *deadline) context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, d.start.Add(time.Duration(d.last.Load())+redisTimeout))
}
