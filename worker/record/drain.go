package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"reprise/store"
)

// Drain writes all settlements of the outbox to SQL. It stops at the first page that SQL refuses; the rest stays.
func (r *Recorder) Drain(ctx context.Context) error {
	var cursor uint64
	for {
		page, next, err := r.outbox.page(ctx, cursor)
		if err != nil {
			return err
		}
		if err := r.drainPage(ctx, page); err != nil {
			if store.IsUnavailable(err) {
				r.storeFailed()
			}
			return fmt.Errorf("write the outbox to the store: %w", err)
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// drainPage writes a page of the outbox and drops it. An entry that can never be stored is set aside, so that the
// others can.
func (r *Recorder) drainPage(ctx context.Context, page []stored) error {
	var readable, drop []stored
	var entries []Entry
	for _, s := range page {
		err := json.Unmarshal([]byte(s.raw), &s.entry)
		switch {
		case err != nil && json.Valid([]byte(s.raw)):
			r.warn.Warn(ctx, "outbox_entry", "an outbox entry of a newer version is left for a newer worker", err)
			continue
		case err != nil: // its task is unknown; Status drops its verdict
			if err := r.setAside(ctx, s, err); err != nil {
				return err
			}
		case r.ledger == nil && (s.entry.Latch != nil || s.entry.Verified != nil):
			continue // for a worker with the upload ledger
		default:
			readable, entries = append(readable, s), append(entries, s.entry)
		}
		drop = append(drop, s)
	}
	err := r.write(ctx, entries...)
	if errors.Is(err, store.ErrInvalid) {
		err = r.writeEach(ctx, readable)
	}
	if err != nil {
		return err
	}
	return r.outbox.drop(ctx, drop)
}

// writeEach writes entries one by one and sets aside those that the store refuses.
func (r *Recorder) writeEach(ctx context.Context, list []stored) error {
	for _, s := range list {
		err := r.write(ctx, s.entry)
		if errors.Is(err, store.ErrInvalid) {
			err = r.setAside(ctx, s, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Recorder) setAside(ctx context.Context, s stored, why error) error {
	r.log.Error("a settlement that cannot be stored was set aside", "attempt", s.id, "key", r.outbox.rejected, "error", why)
	return r.outbox.reject(ctx, s)
}
