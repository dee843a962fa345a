package intake

import (
	"context"
	"errors"
	"slices"

	"reprise/idempotency"
	"reprise/store"
)

// claim claims the ledger slots of a chunk's uploads, before they are registered and queued. A refused upload therefore
// has no row in the store, and after a crash the next run finds the assigned audio_id by its content. claim returns the
// items to register and calls step for each other item.
func (in *Intake) claim(ctx context.Context, plan *Plan, chunk []int, step func()) ([]int, error) {
	if err := in.assignIDs(ctx, plan, chunk); err != nil {
		return nil, err
	}
	var claims []idempotency.Claim
	var items []*Item
	for _, i := range chunk {
		it := &plan.Items[i]
		switch it.Status {
		case SameContent:
			if err := it.shareID(); err != nil {
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
		if it.Status == SameContent && (it.first.Status == Refused || it.first.Status == Failed) {
			it.shareStatus(it.first)
		}
		bad := it.Status == Refused || it.Status == Failed
		if bad {
			step()
		}
		return bad
	}), nil
}

func (in *Intake) claimOf(req Request, it *Item) idempotency.Claim {
	at := it.slot()
	return idempotency.Claim{
		Source: at.source, AudioID: at.id, Key: it.Payload.Key, SHA256: it.Payload.Input.SHA256,
		Replace: req.Replace, Allotted: it.needsID, By: req.By, At: in.opts.Now(),
	}
}

// claimed updates an upload by the result of its claim.
func (in *Intake) claimed(ctx context.Context, plan *Plan, it *Item, got idempotency.Claimed) error {
	var taken *idempotency.SlotTakenError
	switch {
	case errors.As(got.Refused, &taken):
		owner, err := in.nameOf(ctx, taken.Slot.Key)
		if err != nil {
			return err
		}
		it.refuse("%s", slotTaken(it.slot(), owner, taken.Slot.Since))
		return nil
	case got.Refused != nil:
		it.refuse("is refused by the upload ledger: %s", got.Refused.Error())
		return nil //nolint:nilerr // the item carries it
	case it.needsID && len(got.SameContent) > 0:
		return in.useSlotOf(ctx, plan, it, got.SameContent)
	}
	it.needsID = false
	reason := it.ledger.reason
	if got.State != it.ledger.state {
		reason = ""
	}
	it.ledger = ledgerState{known: true, generation: got.Generation, state: got.State, reason: reason}
	if got.Reopened && it.Status == AlreadyDone {
		it.Status, it.Units = ToQueue, 1
	}
	switch {
	case got.Replaced != nil:
		owner, err := in.nameOf(ctx, got.Replaced.Key)
		if err != nil {
			return err
		}
		it.Warning = slotReplaced(it.slot(), owner, got.Replaced.Since)
	case len(got.SameContent) > 0:
		var ids []int64
		for _, s := range got.SameContent {
			ids = append(ids, s.AudioID)
		}
		it.Warning = sameContentAs(ids)
	}
	return nil
}

// useSlotOf replaces an assigned audio_id by the slot that another run has claimed for the same content in the meantime.
// Among several slots it prefers a registered one, then the one that was claimed first.
func (in *Intake) useSlotOf(ctx context.Context, plan *Plan, it *Item, others []idempotency.Slot) error {
	slices.SortFunc(others, func(a, b idempotency.Slot) int { return a.Since.Compare(b.Since) })
	best := others[0]
	for _, s := range others {
		st, err := in.opts.Store.TaskStatus(ctx, s.Key)
		if err != nil {
			return err
		}
		if st.Known {
			best = s
			break
		}
	}
	if err := it.setID(best.AudioID); err != nil {
		return err
	}
	it.needsID = false
	got, err := in.opts.Ledger.Claim(ctx, in.claimOf(plan.Request, it))
	if err != nil {
		return err
	}
	return in.claimed(ctx, plan, it, got[0])
}

// sendAgain queues an upload that was sent before for another send, which is billed again. It reopens the ledger first,
// because workers do not send a settled upload. A crash after this leaves an ended task, which the next run queues.
func (in *Intake) sendAgain(ctx context.Context, it *Item, st store.TaskStatus, plan *Plan) error {
	if err := in.notRunning(ctx, it, st); err != nil {
		return err
	}
	act := idempotency.Action{By: plan.Request.By, Why: "forced by batch " + plan.Batch, At: in.opts.Now()}
	_, err := in.opts.Ledger.Reopen(ctx, it.Payload.Key, it.ledger.generation, act)
	var early *idempotency.TooEarlyError
	var not *idempotency.NotResolvableError
	switch {
	case errors.As(err, &early):
		return refusal("was settled by an operator, but its request may still be in flight: use --force after " + timestamp(early.Until))
	case errors.As(err, &not):
		return refusal("is " + string(not.State) + " now: see `inspect uploads`")
	case err != nil:
		return err
	}
	return in.reopen(ctx, it, st)
}
