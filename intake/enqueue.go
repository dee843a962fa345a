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
	registerChunk = 200
	// uploadChunk is smaller: the ledger's latches wait while it takes claims.
	uploadChunk = 50
	// enqueuers is how many goroutines talk to Redis: one is bound by the round
	// trip, more than these no longer help (about 85 µs each on loopback).
	enqueuers = 16
	// claimTimeout bounds what a chunk asks of the store, putTimeout is how long it
	// waits for Redis to get on. A cancelled ctx ends neither: what was begun is
	// finished.
	claimTimeout = 30 * time.Second
	putTimeout   = 10 * time.Second
)

// Enqueue registers the plan's inputs in the store and puts what is to be done
// into the queue, in chunks; it updates the items' verdicts. When ctx ends it
// finishes the chunk at hand, leaves the rest at Queue, and returns ctx's
// error: what was queued stays queued, and enqueuing the same inputs again goes
// on. An input that could not be queued is Failed and does not stop the others;
// an error means the store failed and the rest was not tried.
func (in *Intake) Enqueue(ctx context.Context, plan *Plan, progress func(Progress)) error {
	if in.client == nil {
		return errors.New("enqueue: no Redis")
	}
	var rest []int
	for i := range plan.Items {
		switch plan.Items[i].Status {
		case ToQueue, AlreadyQueued, AlreadyDone, SameContent:
			rest = append(rest, i)
		case Queued, Refused, Failed: // decided
		}
	}
	total := len(rest)
	var done atomic.Int64
	step := func() {
		if n := done.Add(1); progress != nil {
			progress(Progress{Done: int(n), Total: total})
		}
	}
	for len(rest) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("enqueue: %w", context.Cause(ctx))
		}
		chunk := rest[:min(chunkOf(plan.Request.Path), len(rest))]
		rest = rest[len(chunk):]
		if err := in.chunk(ctx, plan, chunk, step); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
	}
	plan.settleShared()
	return nil
}

// chunk registers, then enqueues: if the process dies in between, the task is
// known and unfinished, and the next run enqueues it.
func (in *Intake) chunk(ctx context.Context, plan *Plan, chunk []int, step func()) error {
	ctx = context.WithoutCancel(ctx)
	sctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	if plan.Request.Path == tasks.Upload {
		var err error
		if chunk, err = in.claim(sctx, plan, chunk, step); err != nil {
			return err
		}
	}
	submissions := make([]store.Submission, len(chunk))
	for n, i := range chunk {
		it := &plan.Items[i]
		sub, err := in.submission(plan, i)
		if err != nil {
			return err
		}
		sub.Fresh = it.reopen
		submissions[n] = sub
	}
	standings, err := in.opts.Store.Register(sctx, submissions)
	if err != nil {
		return err
	}
	pace := newPace()
	var group errgroup.Group
	group.SetLimit(enqueuers)
	for n, i := range chunk {
		it := &plan.Items[i]
		group.Go(func() error {
			defer step()
			if it.Status != ToQueue {
				return nil
			}
			pctx, cancel := pace.next(ctx)
			defer cancel()
			if in.put(pctx, it, standings[n], plan); it.Status != Failed {
				pace.went()
			}
			return nil
		})
	}
	return group.Wait()
}

func chunkOf(p tasks.Path) int {
	if p == tasks.Upload {
		return uploadChunk
	}
	return registerChunk
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

		ExternalID: it.ExternalID,
		Metadata:   it.Metadata,
	}, nil
}

// submissionID sorts in the plan's order.
func (p *Plan) submissionID(i int) string { return fmt.Sprintf("%s-%07d", p.Batch, i+1) }

// put queues one item whose submission is registered.
func (in *Intake) put(ctx context.Context, it *Item, st store.TaskStatus, plan *Plan) {
	force := plan.Request.Force
	// It may have finished since it was planned.
	if it.Payload.Path == tasks.Upload {
		judgeUpload(it, st, plan.Request)
	} else if st.Finished {
		in.judge(it, st, force)
	}
	if it.Status != ToQueue {
		return
	}
	var err error
	switch {
	case st.Finished && it.upload.resend:
		err = in.resend(ctx, it, st, plan)
	case st.Finished:
		err = in.reopen(ctx, it, st)
	default:
		it.reopen = it.reopen || force
		err = in.enqueue(ctx, it, st)
	}
	var why refusal
	switch {
	case errors.As(err, &why):
		it.Status, it.Reason, it.Units = Refused, string(why), 0
	case err != nil:
		it.Status, it.Reason = Failed, "could not be queued: "+err.Error()
	}
}

// settleShared gives inputs that share a task the end of the one that was queued.
func (p *Plan) settleShared() {
	byKey := map[string]*Item{}
	for i := range p.Items {
		it := &p.Items[i]
		key := it.Payload.Key
		if it.Status == SameContent {
			if first := byKey[key]; first != nil {
				shareVerdict(it, first)
			}
		} else if key != "" && byKey[key] == nil {
			byKey[key] = it
		}
	}
}
