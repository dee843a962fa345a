package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"reprise/store"
)

// Drain writes all settlements of the outbox to SQL. It returns at the first
// page that SQL refuses; what is not written stays.
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

// drainPage writes a page of the outbox and drops it. An entry that can never
// be stored is set aside, so that it does not block the others.
func (r *Recorder) drainPage(ctx context.Context, page []waiting) error {
	var batch []Entry
	var written []waiting
	var fields []string
	for _, w := range page {
		var e Entry
		if err := json.Unmarshal([]byte(w.raw), &e); err != nil {
			if json.Valid([]byte(w.raw)) {
				r.warn.Warn("outbox_entry", "an outbox entry of a newer worker is left for one", err)
				continue
			}
			if err := r.setAside(ctx, w, err); err != nil {
				return err
			}
			written, fields = append(written, w), append(fields, "") // its task is unknown; Status drops its verdict
			continue
		}
		if r.ledger == nil && (e.Latch != nil || e.Verified != nil) {
			continue // left for a worker that has the upload ledger
		}
		batch = append(batch, e)
		written, fields = append(written, w), append(fields, endedField(e.Settlement))
	}
	err := r.write(ctx, batch...)
	if errors.Is(err, store.ErrInvalid) {
		err = r.writeEach(ctx, page)
	}
	if err != nil {
		return err
	}
	return r.outbox.drop(ctx, written, fields)
}

// writeEach writes the entries of a page one by one and sets aside those that
// the store refuses.
func (r *Recorder) writeEach(ctx context.Context, page []waiting) error {
	for _, w := range page {
		var e Entry
		if json.Unmarshal([]byte(w.raw), &e) != nil || r.ledger == nil && (e.Latch != nil || e.Verified != nil) {
			continue // left, or set aside before
		}
		err := r.write(ctx, e)
		if errors.Is(err, store.ErrInvalid) {
			err = r.setAside(ctx, w, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Recorder) setAside(ctx context.Context, w waiting, why error) error {
	r.log.Error("a settlement that cannot be stored was set aside", "attempt", w.id, "key", r.outbox.rejected, "error", why)
	return r.outbox.reject(ctx, w)
}
