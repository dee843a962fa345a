package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"reprise/idempotency"
	"reprise/tasks"
)

// reuseIDs looks for the audio_ids that uploads without one were given before:
// by an input of this plan, or in the ledger by an earlier run. Inputs with the
// same content share one. What is left is allotted by Enqueue.
func (in *Intake) reuseIDs(ctx context.Context, plan *Plan) error {
	without, given := map[content]*Item{}, map[content]int64{}
	sources := map[string]bool{}
	for i := range plan.Items {
		it := &plan.Items[i]
		switch {
		case it.Status != ToQueue || it.Payload.Input.SHA256 == "":
		case !it.upload.allot:
			if _, twice := given[it.content()]; !twice {
				given[it.content()] = it.slot().id
			}
		case without[it.content()] != nil:
			it.twin, it.Status, it.Units = without[it.content()], SameContent, 0
		default:
			without[it.content()] = it
			sources[it.Payload.Params.Source] = true
		}
	}
	for source := range sources {
		known, err := in.idsOf(ctx, source, without)
		if err != nil {
			return err
		}
		maps.Copy(given, known)
	}
	for c, it := range without {
		if id, ok := given[c]; ok {
			if err := it.setID(id); err != nil {
				return fmt.Errorf("use the audio_id %d again: %w", id, err)
			}
			it.upload.allot = false
		}
	}
	return nil
}

// idsOf finds the slots of a source that hold the wanted contents. Where
// several do, what was sent is preferred, then what was queued, then the
// lowest. It reads all of the source's ledger: 100,000 entries take about a
// second.
func (in *Intake) idsOf(ctx context.Context, source string, wanted map[content]*Item) (map[content]int64, error) {
	best := map[content]idempotency.Entry{}
	rank := map[content]int{}
	var failed error
	err := in.entries(ctx, idempotency.Filter{Source: source}, func(e idempotency.Entry) {
		c := content{source, e.SHA256}
		if wanted[c] == nil || e.Owner != e.Key { // replaced: the slot holds other content now
			return
		}
		r, err := in.rank(ctx, e)
		failed = errors.Join(failed, err)
		old, have := best[c]
		if !have || r > rank[c] || r == rank[c] && e.AudioID < old.AudioID {
			best[c], rank[c] = e, r
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	ids := map[content]int64{}
	for c, e := range best {
		ids[c] = e.AudioID
	}
	return ids, nil
}

func (in *Intake) rank(ctx context.Context, e idempotency.Entry) (int, error) {
	switch e.State {
	case idempotency.Settled:
		return 5, nil
	case idempotency.Sent, idempotency.Uncertain:
		return 4, nil
	case idempotency.Rejected:
		return 1, nil
	case idempotency.Free, idempotency.Released: // told apart below
	}
	// A run that ended between its claim and its registration leaves a slot
	// whose task nobody knows.
	st, err := in.opts.Store.TaskStatus(ctx, e.Key)
	if st.Known {
		return 3, err
	}
	return 2, err
}

// allot gives new audio_ids to the uploads of a chunk that have none. Ids that
// a crash loses before they are claimed stay unused.
func (in *Intake) allot(ctx context.Context, plan *Plan, chunk []int) error {
	waiting := map[string][]*Item{}
	var order []string
	for _, i := range chunk {
		it := &plan.Items[i]
		if it.Status != ToQueue || !it.upload.allot {
			continue
		}
		source := it.Payload.Params.Source
		if waiting[source] == nil {
			order = append(order, source)
		}
		waiting[source] = append(waiting[source], it)
	}
	for _, source := range order {
		items := waiting[source]
		next, err := in.opts.Ledger.NextID(ctx, source, int64(len(items)))
		if err != nil && !errors.Is(err, idempotency.ErrInvalid) {
			return err
		}
		for n, it := range items {
			if err == nil {
				err = it.setID(next + int64(n))
			}
			if err != nil {
				it.refuse("gets no audio_id: %s", err.Error())
			}
		}
	}
	return nil
}

// follow gives an input that shares a task the audio_id of the other one.
func (it *Item) follow() error {
	if it.Payload.Key != "" || it.twin.Payload.Key == "" {
		return nil
	}
	return it.setID(it.twin.slot().id)
}

// AudioID is the upload's slot; false as long as it has none, and for other paths.
func (it *Item) AudioID() (int64, bool) {
	if it.Payload.Path != tasks.Upload || it.Payload.Params.AudioID == nil {
		return 0, false
	}
	return *it.Payload.Params.AudioID, true
}
