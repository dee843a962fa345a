package intake

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/store"
	"reprise/tasks"
)

// Plan expands and checks the inputs, and says of each what Enqueue would do.
// It reads files and the store, writes nothing and costs nothing. A bad input
// is an item with its reason, not an error; an error means that nothing can be
// said (the store cannot be read, ctx has ended, the request contradicts
// itself). progress may be nil and is called by several goroutines.
func (in *Intake) Plan(ctx context.Context, req Request, args []string, progress func(Progress)) (*Plan, error) {
	if err := in.checkRequest(req); err != nil {
		return nil, err
	}
	inputs, err := in.expand(ctx, args)
	if err != nil {
		return nil, fmt.Errorf("expand the inputs: %w", err)
	}
	return in.plan(ctx, req, inputs, progress)
}

// PlanManifest is Plan for the rows of a manifest, which it leaves as it is.
func (in *Intake) PlanManifest(ctx context.Context, req Request, m *Manifest, progress func(Progress)) (*Plan, error) {
	if err := in.checkRequest(req); err != nil {
		return nil, err
	}
	return in.plan(ctx, req, slices.Clone(m.rows), progress)
}

func (in *Intake) plan(ctx context.Context, req Request, inputs []found, progress func(Progress)) (*Plan, error) {
	number(req, inputs)
	plan := &Plan{Batch: newBatch(), Request: req, Items: make([]Item, len(inputs))}
	if req.Group != "" || req.Path == tasks.Upload {
		var err error
		if plan.names, err = in.inForce(ctx); err != nil {
			return nil, fmt.Errorf("read which sources and groups there are: %w", err)
		}
		if err := plan.names.checkNames(req, inputs); err != nil {
			return nil, err
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(in.opts.Parallel)
	var done, read atomic.Int64
	for i, input := range inputs {
		group.Go(func() error {
			item, err := in.check(gctx, req, input)
			if err != nil {
				return err
			}
			plan.Items[i] = item
			read.Add(item.Payload.Input.Size)
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
		return nil, fmt.Errorf("compare with what is known: %w", err)
	}
	return plan, nil
}

// checkRequest finds parameters that no input could make right, before any
// file is read.
func (in *Intake) checkRequest(req Request) error {
	if err := tasks.ValidateGroup(req.Group); err != nil {
		return fmt.Errorf("check the parameters: %w", err)
	}
	if req.Path == tasks.Upload {
		return in.checkUpload(req)
	}
	probe := tasks.Input{Kind: tasks.URLInput, URL: "http://localhost/"}
	if _, err := tasks.New(req.Path, probe, req.Params, req.MaxUnits); err != nil {
		return fmt.Errorf("check the parameters: %w", err)
	}
	return nil
}

// check looks at one input by itself. Its error is ctx's.
func (in *Intake) check(ctx context.Context, req Request, input found) (Item, error) {
	item := Item{
		Name: input.name, Status: Refused, Reason: input.refusal,
		group: req.Group, At: input.at, ExternalID: input.externalID, Metadata: input.metadata,
	}
	if item.Reason != "" {
		return item, nil
	}
	var audio tasks.Input
	var err error
	if input.url != "" {
		audio, err = in.link(input.url)
	} else {
		audio, err = inspect(ctx, req.Path, input.path)
	}
	if err == nil {
		err = item.build(req, input, audio)
	}
	var why refusal
	switch {
	case errors.As(err, &why):
		item.Reason = string(why)
	case err != nil:
		return Item{}, err
	default:
		item.Status = ToQueue
	}
	return item, nil
}

func (in *Intake) link(raw string) (tasks.Input, error) {
	audio := tasks.Input{Kind: tasks.URLInput, URL: raw, ExpiresAt: expiry(raw)}
	if audio.ExpiredAt(in.opts.Now()) {
		at := time.Unix(audio.ExpiresAt, 0).UTC()
		return tasks.Input{}, refusal("is a signed link that expired at " + at.Format(time.RFC3339))
	}
	return audio, nil
}

func (it *Item) build(req Request, input found, audio tasks.Input) (err error) {
	if req.Path == tasks.Upload {
		return it.buildUpload(input, audio)
	}
	it.Payload, it.Units, err = build(req, audio)
	return err
}

// build makes the payload and its bound on units.
func build(req Request, audio tasks.Input) (tasks.Payload, int64, error) {
	p, err := tasks.New(req.Path, audio, req.Params, req.MaxUnits)
	if err != nil {
		if audio.Kind == tasks.URLInput {
			return p, 0, refusal("is not a URL that can be used: want http:// or https:// and a host")
		}
		return p, 0, refusal(err.Error())
	}
	units, bounded := p.Units(false)
	switch {
	case !bounded:
		return p, 0, refusal("has no length that can be measured without decoding: say what it may cost with --max-units")
	case req.MaxUnits > 0 && units > req.MaxUnits:
		return p, 0, refusal(fmt.Sprintf("would cost up to %d units, more than --max-units %d: scan less of it (--every, --skip) or raise the bound",
			units, req.MaxUnits))
	}
	return p, units, nil
}

// compare finds inputs with the same content and those that are settled or
// queued already.
func (in *Intake) compare(ctx context.Context, plan *Plan) error {
	if plan.Request.Path == tasks.Upload {
		if err := in.lookUp(ctx, plan); err != nil {
			return err
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(in.opts.Parallel)
	first, again := map[string]*Item{}, []*Item{}
	for i := range plan.Items {
		it := &plan.Items[i]
		switch key := it.Payload.Key; {
		case it.Status == SameContent:
			again = append(again, it)
		case it.Status != ToQueue, key == "": // an upload without an audio_id yet
		case first[key] != nil:
			it.twin = first[key]
			again = append(again, it)
		default:
			first[key] = it
			group.Go(func() error { return in.place(gctx, it, plan) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, it := range again {
		if err := it.follow(); err != nil {
			return err
		}
		shareVerdict(it, it.twin)
	}
	return nil
}

// place finds out where the key of an item stands.
func (in *Intake) place(ctx context.Context, it *Item, plan *Plan) error {
	req := plan.Request
	standing, err := in.opts.Store.TaskStatus(ctx, it.Payload.Key)
	if err != nil {
		return err
	}
	if req.Path == tasks.Upload {
		judgeUpload(it, standing, req)
	} else {
		in.judge(it, standing, req.Force)
	}
	if it.Status != ToQueue || !standing.Known || standing.Finished || in.opts.Redis == nil {
		return nil
	}
	queues := []string{it.queue()}
	if !plan.names.heavier(it.group, standing.Queue) {
		queues = append(queues, standing.Queue)
	}
	for _, queue := range slices.Compact(queues) {
		info, err := in.infoIn(queue, it.Payload.Key)
		if err != nil {
			return err
		}
		if info != nil && !ended(info.State) {
			it.Status, it.Units = AlreadyQueued, 0
			return nil
		}
	}
	return nil
}

// shareVerdict gives an input the fate of another one with the same task.
func shareVerdict(it, first *Item) {
	it.Status, it.Reason, it.Outcome, it.Result = first.Status, first.Reason, first.Outcome, first.Result
	it.Units, it.reopen = 0, false
	if first.Status == ToQueue || first.Status == Queued {
		it.Status = SameContent
	}
}

// judge turns where a key stands into a verdict.
func (in *Intake) judge(it *Item, st store.TaskStatus, force bool) {
	if !st.Finished {
		return
	}
	stale := it.Payload.Input.Kind == tasks.URLInput && it.Payload.Path != tasks.Upload &&
		in.opts.Now().Sub(st.FinishedAt) > urlReuse
	switch {
	case force, stale && st.Verdict == tasks.Done:
		it.reopen = true
		return
	case st.Verdict == tasks.Done:
		it.Status, it.Outcome, it.Result = AlreadyDone, st.Outcome, st.Result
	case st.Verdict == tasks.Hold:
		it.Status, it.Reason = Refused, "waits for a person to decide: "+st.Reason
	case st.Final:
		it.Status, it.Reason = Refused, "failed for good before ("+st.Reason+"): --force pays and tries again"
	default:
		it.Status = Refused
		it.Reason = fmt.Sprintf("is archived (%s): replay it with `inspect replay %s`, or try again with --force", st.Reason, it.Payload.Key)
	}
	it.Units = 0
}

// batchLetters leaves out what is easily misread: 0 o, 1 l i.
const batchLetters = "23456789abcdefghjkmnpqrstuvwxyz"

// newBatch is a short id to type: b and seven letters, 2.7·10^10 of them.
func newBatch() string {
	raw := make([]byte, 7)
	_, _ = rand.Read(raw) // never fails (crypto/rand)
	id := []byte{'b'}
	for _, b := range raw {
		id = append(id, batchLetters[int(b)%len(batchLetters)])
	}
	return string(id)
}
