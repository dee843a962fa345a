package intake

import (
	"context"
	"errors"
	"slices"

	"reprise/idempotency"
	"reprise/store"
)

// claim asks the ledger for the slots of a chunk's uploads, before they are
// registered and queued: what is refused leaves no trace in the store, and an
// allotted audio_id is found again by its content after a crash anywhere
// behind this. It returns what may be registered.
func (in *Intake) claim(ctx context.Context, plan *Plan, chunk []int, step func()) ([]int, error) {
	if err := in.allot(ctx, plan, chunk); err != nil {
		return nil, err
	}
	var claims []idempotency.Claim
	var items []*Item
	for _, i := range chunk {
		it := &plan.Items[i]
		switch it.Status {
		case SameContent:
			if err := it.follow(); err != nil {
				return nil, err
			}
		case ToQueue, AlreadyQueued, AlreadyDone:
			items = append(items, it)
			claims = append(claims, in.claimOf(plan.Request, it))
		case Queued, Refused, Failed: // decided
		}
	}
	if len(claims) > 0 {
		got, err := in.opts.Ledger.Claim(ctx, claims...)
		if err != nil {
			return nil, err
		}
		for n, it := range items {
			if err := in.claimed(ctx, plan, it, got[n]); err != nil {
				return nil, err
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(chunk), func(i int) bool {
		it := &plan.Items[i]
		if it.Status == SameContent && (it.twin.Status == Refused || it.twin.Status == Failed) {
			shareVerdict(it, it.twin)
		}
		gone := it.Status == Refused || it.Status == Failed
		if gone {
			step()
		}
		return gone
	}), nil
}

func (in *Intake) claimOf(req Request, it *Item) idempotency.Claim {
	at := it.slot()
	return idempotency.Claim{
		Source: at.source, AudioID: at.id, Key: it.Payload.Key, SHA256: it.Payload.Input.SHA256,
		Replace: req.Replace, Allotted: it.upload.allot, By: req.By, At: in.opts.Now(),
	}
}

// claimed notes what became of an upload's claim.
func (in *Intake) claimed(ctx context.Context, plan *Plan, it *Item, got idempotency.Claimed) error {
	var slot *idempotency.SlotTakenError
	switch {
	case errors.As(got.Refused, &slot):
		owner, err := in.nameOf(ctx, slot.Owner)
		if err != nil {
			return err
		}
		it.refuse("%s", takenSentence(it.slot(), owner, slot.Since))
		return nil
	case got.Refused != nil:
		it.refuse("is refused by the upload ledger: %s", got.Refused.Error())
		return nil //nolint:nilerr // the item carries it
	case it.upload.allot && len(got.SameContent) > 0:
		return in.overtaken(ctx, plan, it, got.SameContent)
	}
	it.upload.allot = false
	if got.State != it.upload.ledger.state {
		it.upload.ledger.reason = ""
	}
	it.upload.ledger.known, it.upload.ledger.generation, it.upload.ledger.state = true, got.Generation, got.State
	if got.Reopened && it.Status == AlreadyDone {
		it.Status, it.Units = ToQueue, 1
	}
	if got.Replaced != nil {
		owner, err := in.nameOf(ctx, got.Replaced.Key)
		if err != nil {
			return err
		}
		it.Warning = replacedSentence(it.slot(), owner, got.Replaced.Since)
	} else if len(got.SameContent) > 0 {
		var ids []int64
		for _, s := range got.SameContent {
			ids = append(ids, s.AudioID)
		}
		it.Warning = sameSentence(ids)
	}
	return nil
}

// overtaken gives up an audio_id just allotted, which the ledger did not claim:
// another run has claimed a slot for the same content meanwhile, and its id is
// used. Of several slots that people gave, a registered one is preferred, then
// the one claimed first.
func (in *Intake) overtaken(ctx context.Context, plan *Plan, it *Item, others []idempotency.Slot) error {
	registered := map[string]bool{}
	for _, s := range others {
		st, err := in.opts.Store.TaskStatus(ctx, s.Key)
		if err != nil {
			return err
		}
		registered[s.Key] = st.Known
	}
	first := slices.MinFunc(others, func(a, b idempotency.Slot) int {
		if registered[a.Key] != registered[b.Key] {
			if registered[a.Key] {
				return -1
			}
			return 1
		}
		return a.Since.Compare(b.Since)
	})
	if err := it.setID(first.AudioID); err != nil {
		return err
	}
	it.upload.allot = false
	got, err := in.opts.Ledger.Claim(ctx, in.claimOf(plan.Request, it))
	if err != nil {
		return err
	}
	return in.claimed(ctx, plan, it, got[0])
}

// resend lets an upload be sent, and billed, once more: first in the ledger,
// because as long as that calls it settled no worker sends it. A crash after
// it leaves a key that may be sent and a task that is ended, which the next
// run queues.
func (in *Intake) resend(ctx context.Context, it *Item, st store.TaskStatus, plan *Plan) error {
	if err := in.notRunning(it, st); err != nil {
		return err
	}
	act := idempotency.Act{By: plan.Request.By, Why: "forced by batch " + plan.Batch, At: in.opts.Now()}
	_, err := in.opts.Ledger.Reopen(ctx, it.Payload.Key, it.upload.ledger.generation, act)
	var early *idempotency.TooEarlyError
	var not *idempotency.NotResolvableError
	switch {
	case errors.As(err, &early):
		return refusal("was settled by a person, and its send may still be on its way until " + since(early.Until) + ": force it after that")
	case errors.As(err, &not):
		return refusal("is " + string(not.State) + " by now: see `inspect uploads`")
	case err != nil:
		return err
	}
	return in.reopen(ctx, it, st)
}
