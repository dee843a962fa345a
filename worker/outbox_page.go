package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"reprise/admission"
	"reprise/store"
)

// writePage stores a page of HSCAN (id, JSON, id, JSON …) and returns what may
// be dropped. An entry that can never be stored is set aside: it must not hold
// up the others.
func (o *outbox) writePage(ctx context.Context, page []string) (drop []any, err error) {
	var batch []entry
	for i := 0; i+1 < len(page); i += 2 {
		var e entry
		if err := json.Unmarshal([]byte(page[i+1]), &e); err != nil {
			if json.Valid([]byte(page[i+1])) { // written by a newer worker, which can read it
				o.warn.do("outbox_entry", "an outbox entry cannot be read by this version; it is left", err)
				continue
			}
			if err := o.reject(ctx, page[i], page[i+1], err); err != nil {
				return nil, err
			}
			drop = append(drop, page[i], page[i+1], "") // whose verdict it was is not known; ended finds out
			continue
		}
		batch = append(batch, e)
		drop = append(drop, page[i], page[i+1], admission.EndedField(e.Settlement.Key, e.Settlement.Generation))
	}
	if err = o.write(ctx, batch...); !errors.Is(err, store.ErrInvalid) {
		return drop, err
	}
	for i := 0; i+1 < len(page); i += 2 {
		var e entry
		if json.Unmarshal([]byte(page[i+1]), &e) != nil {
			continue // left or set aside above
		}
		err := o.write(ctx, e)
		if errors.Is(err, store.ErrInvalid) {
			err = o.reject(ctx, page[i], page[i+1], err)
		}
		if err != nil {
			return nil, err
		}
	}
	return drop, nil
}

func (o *outbox) reject(ctx context.Context, id, raw string, why error) error {
	o.warn.log.Error("a settlement that cannot be stored was set aside", "attempt", id, "key", o.keys.rejected, "error", why)
	if err := o.rdb.HSet(ctx, o.keys.rejected, id, raw).Err(); err != nil {
		return fmt.Errorf("set a settlement aside: %w", err)
	}
	return nil
}
