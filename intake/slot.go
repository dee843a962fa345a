package intake

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

// ledgerPage is the number of audio_ids in one query to the ledger.
const ledgerPage = 200

// setSlots sets the source and the audio_id of each upload. It refuses an upload without an audio_id, an upload with the
// audio_id of an earlier input, and an input of another path that has a source or an audio_id.
func setSlots(req Request, inputs []input) {
	taken := map[slot]*input{}
	for i := range inputs {
		in := &inputs[i]
		switch {
		case in.refused != "":
			continue
		case req.Path != tasks.Upload:
			if in.audioID != nil || in.source != "" {
				in.refused = "has an audio_id or a source, which are only for uploads: remove them"
			}
			continue
		case req.Params.AudioID != nil && len(inputs) > 1:
			in.refused = fmt.Sprintf("is one of %d inputs, but --audio-id is for one input: use --next-id or a manifest", len(inputs))
			continue
		}
		if in.source == "" {
			in.source = normalSource(req.Params.Source)
		}
		if in.audioID == nil {
			in.audioID = req.Params.AudioID
		}
		switch {
		case in.audioID != nil:
			at := slot{in.source, *in.audioID}
			if other := taken[at]; other != nil {
				in.refused = fmt.Sprintf("has the same audio_id as %s: a slot holds one upload", cmp.Or(other.at.String(), other.name))
			} else {
				taken[at] = in
			}
		case !req.NextID:
			in.refused = "has no audio_id: set one, or use --next-id"
		case in.url != "":
			in.refused = "is a URL without an audio_id: set one, because --next-id works only for files"
		}
	}
}

// checkSlots compares the plan's uploads with the ledger and changes nothing there. It finds the audio_id that the same
// content has, the owners of the slots, and the uploads that were sent.
func (in *Intake) checkSlots(ctx context.Context, plan *Plan) error {
	if err := in.reuseIDs(ctx, plan); err != nil {
		return err
	}
	bySource := map[string][]int64{}
	for i := range plan.Items {
		if it := &plan.Items[i]; it.Status == ToQueue && it.Payload.Key != "" {
			bySource[it.Payload.Params.Source] = append(bySource[it.Payload.Params.Source], it.slot().id)
		}
	}
	entries := map[slot][]idempotency.Entry{}
	for source, ids := range bySource {
		for len(ids) > 0 {
			some := ids[:min(ledgerPage, len(ids))]
			ids = ids[len(some):]
			err := in.entries(ctx, idempotency.Filter{Source: source, AudioIDs: some}, func(e idempotency.Entry) error {
				at := slot{e.Source, e.AudioID}
				entries[at] = append(entries[at], e)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	seen := map[content]*Item{}
	for i := range plan.Items {
		it := &plan.Items[i]
		if it.Status != ToQueue || it.Payload.Key == "" {
			continue
		}
		if err := in.checkSlot(ctx, it, entries[it.slot()], plan.Request.Replace); err != nil {
			return err
		}
		it.warnOfSameContent(seen)
	}
	return nil
}

// checkSlot sets the ledger state, warning or refusal of an upload by the entries of its slot. The claim in Enqueue
// decides; a plan only predicts it.
func (in *Intake) checkSlot(ctx context.Context, it *Item, entries []idempotency.Entry, replace bool) error {
	var own, owner idempotency.Entry
	for _, e := range entries {
		if e.Key == it.Payload.Key {
			own = e
			it.ledger = ledgerState{known: true, generation: e.Generation, state: e.State, reason: e.Send.Reason}
		}
	}
	used, overwritten := false, false
	for _, e := range entries {
		if e.Key == it.Payload.Key {
			continue
		}
		if e.Key == e.Owner.Key {
			owner = e
			used = used || e.State != idempotency.Rejected
		}
		switch e.State {
		case idempotency.Sent, idempotency.Settled, idempotency.Uncertain:
			used = true
			overwritten = overwritten || e.Send.Seq > own.Send.Seq
		case idempotency.Free, idempotency.Rejected, idempotency.Released: // AudD does not have it
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
		it.refuse("%s", slotTaken(it.slot(), name, owner.Since))
		return nil
	}
	it.Warning = slotReplaced(it.slot(), name, owner.Since)
	if own.State == idempotency.Settled && overwritten {
		it.ledger.state = idempotency.Free
		it.ledger.generation++
	}
	return nil
}

func slotTaken(at slot, owner string, t time.Time) string {
	return fmt.Sprintf("cannot use %s, which has belonged to other content since %s: %s; --replace overwrites it", at, timestamp(t), owner)
}

func slotReplaced(at slot, owner string, t time.Time) string {
	return fmt.Sprintf("overwrites %s, which belonged to other content since %s: %s", at, timestamp(t), owner)
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// nameOf returns the name and the key of an upload for display.
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

// warnOfSameContent warns if an earlier item of the plan has the same content in another slot.
func (it *Item) warnOfSameContent(seen map[content]*Item) {
	if it.Payload.Input.Kind == tasks.URLInput || it.Status != ToQueue {
		return
	}
	first := seen[it.content()]
	switch {
	case first == nil:
		seen[it.content()] = it
	case first.slot() != it.slot() && it.Warning == "":
		it.Warning = sameContentAs([]int64{first.slot().id})
	}
}

func sameContentAs(ids []int64) string {
	list := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(ids), "[]")), ", ")
	return "has the same content as audio_id " + list + ": each upload is billed"
}
