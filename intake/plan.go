package intake

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/internal/queue"
	"reprise/tasks"
)

// readers is the number of files that a plan reads at once.
var readers = max(4, 2*runtime.GOMAXPROCS(0))

// Plan expands and checks the inputs, and decides what Enqueue does with each. It reads files, the store and the
// queue, and writes nothing. A bad input is an item with its reason, not an error. An error means that there is no
// plan: the store cannot be read, ctx has ended, or the request contradicts itself. progress may be nil; several
// goroutines call it.
func (in *Intake) Plan(ctx context.Context, req Request, args []string, progress func(Progress)) (*Plan, error) {
	inputs, err := expand(ctx, args, in.opts.Stdin)
	if err != nil {
		return nil, fmt.Errorf("expand the inputs: %w", err)
	}
	return in.plan(ctx, req, inputs, progress)
}

// PlanManifest is Plan for the rows of a manifest. It does not change m.
func (in *Intake) PlanManifest(ctx context.Context, req Request, m *Manifest, progress func(Progress)) (*Plan, error) {
	return in.plan(ctx, req, slices.Clone(m.rows), progress)
}

func (in *Intake) plan(ctx context.Context, req Request, inputs []input, progress func(Progress)) (*Plan, error) {
	if err := req.Validate(); err != nil {
		return nil, fmt.Errorf("check the request: %w", err)
	}
	if req.Path == tasks.Upload && in.opts.Ledger == nil {
		return nil, errors.New("uploads need Options.Ledger")
	}
	setSlots(req, inputs)
	plan := &Plan{Batch: newBatch(), Request: req, Items: make([]Item, len(inputs))}
	if req.Group != "" || req.Path == tasks.Upload {
		var err error
		if plan.names, err = in.readNames(ctx); err != nil {
			return nil, fmt.Errorf("read the sources and groups that workers serve: %w", err)
		}
		if err := plan.names.check(req, inputs); err != nil {
			return nil, err
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	var done, read atomic.Int64
	for i := range inputs {
		group.Go(func() (err error) {
			if plan.Items[i], err = in.check(gctx, req, inputs[i]); err != nil {
				return err
			}
			read.Add(plan.Items[i].Payload.Input.Size)
			if n := done.Add(1); progress != nil {
				progress(Progress{Done: int(n), Total: len(inputs), Bytes: read.Load()})
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("check the inputs: %w", err)
	}
	if err := in.compare(ctx, plan); err != nil {
		return nil, fmt.Errorf("compare the inputs with ledger, store and queue: %w", err)
	}
	return plan, nil
}

// batchLetters are digits and letters that are not easily misread: no 0 o 1 l i.
const batchLetters = "23456789abcdefghjkmnpqrstuvwxyz"

// newBatch returns a batch id that is short enough to type: b and seven letters.
func newBatch() string {
	id := make([]byte, 7)
	_, _ = rand.Read(id) // never fails
	for i, b := range id {
		id[i] = batchLetters[int(b)%len(batchLetters)]
	}
	return "b" + string(id)
}

// check checks one input without the others. Its error is the error of ctx.
func (in *Intake) check(ctx context.Context, req Request, input input) (Item, error) {
	item := Item{
		Name: input.name, Status: ToQueue, group: req.Group,
		At: input.at, ExternalID: input.externalID, Metadata: input.metadata,
	}
	if input.refused != "" {
		item.refuse("%s", input.refused)
		return item, nil
	}
	var audio tasks.Input
	var err error
	if input.url != "" {
		audio, err = in.checkURL(input.url)
	} else {
		audio, err = readFile(ctx, req.Path, input.path)
	}
	if err == nil {
		err = item.build(req, input, audio)
	}
	return item, item.refuseOr(err)
}

func (in *Intake) checkURL(raw string) (tasks.Input, error) {
	audio := tasks.Input{Kind: tasks.URLInput, URL: raw, ExpiresAt: expiry(raw)}
	if audio.ExpiredAt(in.opts.Now()) {
		return tasks.Input{}, refusal("is a signed URL that expired at " + timestamp(time.Unix(audio.ExpiresAt, 0)) + ": get a new one")
	}
	return audio, nil
}

// compare finds inputs with the same content, and those that are settled or queued already.
func (in *Intake) compare(ctx context.Context, plan *Plan) error {
	if plan.Request.Path == tasks.Upload {
		if err := in.checkSlots(ctx, plan); err != nil {
			return err
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	first, same := map[string]*Item{}, []*Item{}
	for i := range plan.Items {
		it := &plan.Items[i]
		switch key := it.Payload.Key; {
		case it.Status == SameContent:
			same = append(same, it)
		case it.Status != ToQueue, key == "": // an upload that still needs an audio_id has no key
		case first[key] != nil:
			it.first = first[key]
			same = append(same, it)
		default:
			first[key] = it
			group.Go(func() error { return in.compareTask(gctx, it, plan) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, it := range same {
		if err := it.shareID(); err != nil {
			return err
		}
		it.shareStatus(it.first)
	}
	return nil
}

// compareTask compares an item with the store and the queue.
func (in *Intake) compareTask(ctx context.Context, it *Item, plan *Plan) error {
	st, err := in.opts.Store.TaskStatus(ctx, it.Payload.Key)
	if err != nil {
		return err
	}
	in.decide(it, st, plan.Request)
	if it.Status != ToQueue || !st.Known || st.Finished || in.queues == nil {
		return nil
	}
	names := []string{it.queue()}
	if !plan.names.heavier(it.group, st.Queue) {
		names = append(names, st.Queue)
	}
	for _, name := range slices.Compact(names) {
		task, err := in.find(ctx, name, it.Payload.Key)
		if err != nil {
			return err
		}
		if task.State != queue.NotQueued && !task.State.Ended() {
			it.Status, it.Units = AlreadyQueued, 0
			return nil
		}
	}
	return nil
}
