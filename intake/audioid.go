package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"reprise/idempotency"
)

// reuseIDs fills in missing audio_ids. If the same content already has an id in this plan or in the ledger, the upload
// reuses it. Uploads with the same content become one. Enqueue assigns ids to uploads that are still without one.
func (in *Intake) reuseIDs(ctx context.Context, plan *Plan) error {
	needs, ids := map[content]*Item{}, map[content]int64{}
	sources := map[string]bool{}
	for i := range plan.Items {
		it := &plan.Items[i]
		switch {
		case it.Status != ToQueue || it.Payload.Input.SHA256 == "":
		case !it.needsID:
			if _, known := ids[it.content()]; !known {
				ids[it.content()] = it.slot().id
			}
		case needs[it.content()] != nil:
			it.first, it.Status, it.Units = needs[it.content()], SameContent, 0
		default:
			needs[it.content()] = it
			sources[it.Payload.Params.Source] = true
		}
	}
	for source := range sources {
		found, err := in.idsInLedger(ctx, source, needs)
		if err != nil {
			return err
		}
		maps.Copy(ids, found)
	}
	for c, it := range needs {
		if id, ok := ids[c]; ok {
			if err := it.setID(id); err != nil {
				return fmt.Errorf("reuse audio_id %d: %w", id, err)
			}
			it.needsID = false
		}
	}
	return nil
}

// idsInLedger returns the audio_ids of the wanted contents in a source. Among several slots of a content it prefers one
// that was sent, then one that is registered, then the lowest id. It reads all entries of the source, 100,000 in about a
// second.
func (in *Intake) idsInLedger(ctx context.Context, source string, wanted map[content]*Item) (map[content]int64, error) {
	ids, ranks := map[content]int64{}, map[content]int{}
	err := in.entries(ctx, idempotency.Filter{Source: source}, func(e idempotency.Entry) error {
		c := content{source, e.SHA256}
		if wanted[c] == nil || e.Owner.Key != e.Key { // another content has replaced this one
			return nil
		}
		rank, err := in.slotRank(ctx, e)
		if id, have := ids[c]; !have || rank > ranks[c] || rank == ranks[c] && e.AudioID < id {
			ids[c], ranks[c] = e.AudioID, rank
		}
		return err
	})
	return ids, err
}

func (in *Intake) slotRank(ctx context.Context, e idempotency.Entry) (int, error) {
	switch e.State {
	case idempotency.Settled:
		return 5, nil
	case idempotency.Sent, idempotency.Uncertain:
		return 4, nil
	case idempotency.Rejected:
		return 1, nil
	case idempotency.Free, idempotency.Released: // the store decides
	}
	// A run that ended between claim and registration leaves a slot whose task is not in the store.
	st, err := in.opts.Store.TaskStatus(ctx, e.Key)
	if st.Known {
		return 3, err
	}
	return 2, err
}

// entries calls each for all entries of the ledger that match the filter, up to the first error.
func (in *Intake) entries(ctx context.Context, f idempotency.Filter, each func(idempotency.Entry) error) error {
	const page = 1000
	f.Limit = page
	for {
		found, err := in.opts.Ledger.List(ctx, f)
		if err != nil {
			return err
		}
		for _, e := range found {
			if err := each(e); err != nil {
				return err
			}
		}
		if len(found) < page {
			return nil
		}
		f.After = found[page-1].Key
	}
}

// assignIDs gives new audio_ids to the uploads of a chunk that have none. Ids that a crash loses before they are
// claimed stay unused.
func (in *Intake) assignIDs(ctx context.Context, plan *Plan, chunk []int) error {
	bySource := map[string][]*Item{}
	for _, i := range chunk {
		if it := &plan.Items[i]; it.Status == ToQueue && it.needsID {
			source := it.Payload.Params.Source
			bySource[source] = append(bySource[source], it)
		}
	}
	for source, items := range bySource {
		next, err := in.opts.Ledger.NextID(ctx, source, int64(len(items)))
		if err != nil && !errors.Is(err, idempotency.ErrInvalid) {
			return err
		}
		for n, it := range items {
			if err == nil {
				err = it.setID(next + int64(n))
			}
			if err != nil {
				it.refuse("cannot get an audio_id: %s", err.Error())
			}
		}
	}
	return nil
}
