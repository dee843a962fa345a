package intake

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

// slotRef names a place in a source's catalog.
type slotRef struct {
	source string
	id     int64
}

func (s slotRef) String() string { return fmt.Sprintf("audio_id %d of source %s", s.id, s.source) }

// slotChunk bounds the audio_ids of one question to the ledger.
const slotChunk = 200

// lookUp compares the plan's uploads with the ledger, and changes nothing
// there: whose the slots are, what was sent, and which audio_ids were given to
// the content of those that have none.
func (in *Intake) lookUp(ctx context.Context, plan *Plan) error {
	if err := in.reuseIDs(ctx, plan); err != nil {
		return err
	}
	bySource := map[string][]int64{}
	for i := range plan.Items {
		if it := &plan.Items[i]; it.Status == ToQueue && it.Payload.Key != "" {
			bySource[it.Payload.Params.Source] = append(bySource[it.Payload.Params.Source], it.slot().id)
		}
	}
	shelf := map[slotRef][]idempotency.Entry{}
	for source, ids := range bySource {
		for len(ids) > 0 {
			some := ids[:min(slotChunk, len(ids))]
			ids = ids[len(some):]
			err := in.entries(ctx, idempotency.Filter{Source: source, AudioIDs: some}, func(e idempotency.Entry) {
				at := slotRef{e.Source, e.AudioID}
				shelf[at] = append(shelf[at], e)
			})
			if err != nil {
				return err
			}
		}
	}
	twice := map[content]*Item{}
	for i := range plan.Items {
		it := &plan.Items[i]
		if it.Status != ToQueue || it.Payload.Key == "" {
			continue
		}
		if err := in.see(ctx, it, shelf[it.slot()], plan.Request.Replace); err != nil {
			return err
		}
		it.warnOfTwin(twice)
	}
	return nil
}

// entries reads all that a filter finds, page by page.
func (in *Intake) entries(ctx context.Context, f idempotency.Filter, each func(idempotency.Entry)) error {
	const page = 1000
	f.Limit = page
	for {
		found, err := in.opts.Ledger.List(ctx, f)
		if err != nil {
			return err
		}
		for _, e := range found {
			each(e)
		}
		if len(found) < page {
			return nil
		}
		f.After = found[page-1].Key
	}
}

// see notes what the ledger says of an upload and its slot. The claim has the
// last word; this is what a dry run can say.
func (in *Intake) see(ctx context.Context, it *Item, slot []idempotency.Entry, replace bool) error {
	var mine, owner idempotency.Entry
	var used, overwritten bool
	for _, e := range slot {
		if e.Key == it.Payload.Key {
			mine = e
			it.upload.ledger = view{known: true, generation: e.Generation, state: e.State, reason: e.Send.Reason}
		}
	}
	for _, e := range slot {
		if e.Key == it.Payload.Key {
			continue
		}
		if e.Key == e.Owner {
			owner = e
			used = used || e.State != idempotency.Rejected
		}
		switch e.State {
		case idempotency.Sent, idempotency.Settled, idempotency.Uncertain:
			used = true
			overwritten = overwritten || e.Send.Seq > mine.Send.Seq
		case idempotency.Free, idempotency.Rejected, idempotency.Released: // AudD has nothing of it
		}
	}
	if owner.Key == "" || !used {
		return nil
	}
	name, err := in.nameOf(ctx, owner.Key)
	if err != nil {
		return err
	}
	if !replace {
		it.refuse("%s", takenSentence(it.slot(), name, owner.Since))
		return nil
	}
	it.Warning = replacedSentence(it.slot(), name, owner.Since)
	if mine.State == idempotency.Settled && overwritten {
		it.upload.ledger.state = idempotency.Free
		it.upload.ledger.generation++
	}
	return nil
}

func takenSentence(at slotRef, owner string, t time.Time) string {
	return fmt.Sprintf("wants %s, which belongs to other content since %s: %s; --replace overwrites it", at, since(t), owner)
}

func replacedSentence(at slotRef, owner string, t time.Time) string {
	return fmt.Sprintf("overwrites %s, which belonged to other content since %s: %s", at, since(t), owner)
}

// nameOf is an upload as people know it: the name it was enqueued with, and
// its key.
func (in *Intake) nameOf(ctx context.Context, key string) (string, error) {
	rows, err := in.opts.Store.Submissions(ctx, store.SubmissionFilter{Key: key, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(rows) == 0 || rows[0].Submission.Name == "" {
		return key, nil
	}
	return rows[0].Submission.Name + " (" + key + ")", nil
}

// content is what one account knows one audio by.
type content struct{ source, sha string }

func (it *Item) content() content {
	return content{it.Payload.Params.Source, it.Payload.Input.SHA256}
}

// warnOfTwin tells of the same content in another slot of the same plan.
func (it *Item) warnOfTwin(seen map[content]*Item) {
	if it.Payload.Input.Kind == tasks.URLInput || it.Status != ToQueue {
		return
	}
	first := seen[it.content()]
	if first == nil {
		seen[it.content()] = it
		return
	}
	if first.slot() != it.slot() && it.Warning == "" {
		it.Warning = sameSentence([]int64{first.slot().id})
	}
}

func sameSentence(ids []int64) string {
	var in strings.Builder
	for i, id := range ids {
		if i > 0 {
			in.WriteString(", ")
		}
		fmt.Fprint(&in, id)
	}
	return "has the same content as audio_id " + in.String() + ": each is an upload of its own, and billed"
}
