package idempotency

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"
)

// Claim asks for a slot, before its upload is enqueued.
type Claim struct {
	Source  string
	AudioID int64
	Key     string
	SHA256  string // "" for a URL
	// Replace takes the slot from other content. That content is not sent any more, and this one overwrites it at AudD.
	Replace bool
	// Allotted marks an AudioID from NextID. If another slot of the source holds the same content already, nothing is
	// claimed and SameContent names that slot. Of concurrent claims for one content only the first gets a slot.
	Allotted bool
	By       string // who replaces, for the audit trail
	At       time.Time
}

func (c Claim) validate() error {
	switch {
	case c.Source == "", c.Key == "", c.At.IsZero():
		return fmt.Errorf("source, key and time are required: %w", ErrInvalid)
	case c.AudioID < 0:
		return fmt.Errorf("audio_id %d: must be 0 or more: %w", c.AudioID, ErrInvalid)
	case c.Replace && c.By == "":
		return fmt.Errorf("a replacement requires By: %w", ErrInvalid)
	}
	return nil
}

// Claimed is the result of a claim.
type Claimed struct {
	Refused     error // nil = the key has the slot; else a *SlotTakenError, or wraps ErrInvalid
	Generation  int64
	State       State  // of the key; Settled = the content is in the slot already
	Replaced    *Slot  // the slot as it was, if the claim took it from other content
	Reopened    bool   // the content was in the slot before, was replaced, and may be sent once more
	SameContent []Slot // at most 20 other slots of the source with the same content; each costs an upload
}

// Claim claims the slots of one or more uploads in one transaction, and returns the results in the order of the claims. A
// refused claim does not affect the others. A repeated claim changes nothing. Other content may claim a slot whose owner
// AudD rejected, if nothing else was sent to the slot.
func (l *Ledger) Claim(ctx context.Context, claims ...Claim) ([]Claimed, error) {
	return write(ctx, l, "claim upload slots", func(tx *txn) ([]Claimed, error) {
		var out []Claimed
		for _, c := range claims {
			got, err := claim(ctx, tx, c)
			if err != nil {
				return nil, err
			}
			out = append(out, got)
		}
		return out, nil
	})
}

func claim(ctx context.Context, tx *txn, c Claim) (Claimed, error) {
	before, known, err := entryOf(ctx, tx, c.Key)
	if err != nil {
		return Claimed{}, err
	}
	got := Claimed{Refused: c.validate(), Generation: before.Generation, State: before.State}
	if known && got.Refused == nil {
		got.Refused = before.same(c.Source, c.AudioID, c.SHA256)
	}
	if got.Refused != nil {
		return Claimed{Refused: got.Refused}, nil //nolint:nilerr // the refusal of one claim does not affect the others
	}
	if got.SameContent, err = sameContent(ctx, tx, c); err != nil {
		return got, err
	}
	if c.Allotted && !known && len(got.SameContent) > 0 {
		return Claimed{SameContent: got.SameContent}, nil
	}
	slot, taken, err := slotOf(ctx, tx, c.Source, c.AudioID)
	if err != nil {
		return got, err
	}
	if taken && slot.Key != c.Key {
		inUse, err := used(ctx, tx, slot, c.Key)
		switch {
		case err != nil:
			return got, err
		case inUse && !c.Replace:
			return Claimed{Refused: &SlotTakenError{Slot: slot}}, nil
		}
		got.Replaced = &slot
	}
	own := Slot{Source: c.Source, AudioID: c.AudioID, Key: c.Key, SHA256: c.SHA256, Since: c.At}
	if !known {
		if err := insertKey(ctx, tx, own); err != nil {
			return got, err
		}
	}
	if !taken || got.Replaced != nil {
		err = putSlot(ctx, tx, own)
	}
	if err == nil && got.Replaced != nil {
		err = replace(ctx, tx, c, before, &got)
	}
	return got, err
}

// replace records that the key took its slot from other content. Content that returns to a slot which other content may
// have overwritten may be sent once more, because an operator decided to replace.
func replace(ctx context.Context, tx *txn, c Claim, before Entry, got *Claimed) error {
	var err error
	if before.State == Settled {
		got.Reopened, err = exists(ctx, tx, `SELECT EXISTS (SELECT 1 FROM upload
			WHERE source = $1 AND audio_id = $2 AND key <> $3 AND seq > $4 AND state IN ('sent', 'settled', 'uncertain'))`,
			c.Source, c.AudioID, c.Key, before.Send.Seq)
	}
	if err == nil && got.Reopened {
		got.Generation, got.State = before.Generation+1, Free
		err = raiseGeneration(ctx, tx, c.Key, before.Generation)
	}
	if err != nil {
		return err
	}
	act := Action{By: c.By, Why: fmt.Sprintf("replace audio_id %d of source %s", c.AudioID, c.Source), At: c.At}
	err = tx.audit(ctx, act, "takes the slot from "+got.Replaced.Key, Send{Key: c.Key, Generation: before.Generation})
	if err != nil {
		return err
	}
	return tx.audit(ctx, act, "loses the slot to "+c.Key, Send{Key: got.Replaced.Key})
}

// used reports whether a slot holds or may still get content of another key than key: something was sent to it, or its
// owner is not rejected.
func used(ctx context.Context, q querier, slot Slot, key string) (bool, error) {
	sent, err := sharedSlot(ctx, q, Slot{Source: slot.Source, AudioID: slot.AudioID, Key: key})
	if err != nil || sent {
		return sent, err
	}
	owner, _, err := entryOf(ctx, q, slot.Key)
	return owner.State != Rejected, err
}

// sameContent returns the other slots of the source with the same content.
func sameContent(ctx context.Context, q querier, c Claim) ([]Slot, error) {
	if c.SHA256 == "" {
		return nil, nil
	}
	slots, err := all(ctx, q, func(row scanner) (Slot, error) {
		s := Slot{Source: c.Source, SHA256: c.SHA256}
		err := row.Scan(&s.AudioID, &s.Key, millis{&s.Since})
		return s, err
	}, `SELECT audio_id, key, since FROM upload_slot
		WHERE source = $1 AND sha256 = $2 AND audio_id <> $3 ORDER BY audio_id LIMIT 20`, c.Source, c.SHA256, c.AudioID)
	return slots, failed("look for the same content", err)
}

// NextID allots n consecutive audio_ids of a source and returns the first. They begin at 1, lie above every id of the
// source that the ledger has, and are never allotted again, even if they are not used.
func (l *Ledger) NextID(ctx context.Context, source string, n int64) (int64, error) {
	if source == "" || n < 1 {
		return 0, fmt.Errorf("allocate audio_ids: a source and a count of 1 or more are required: %w", ErrInvalid)
	}
	return write(ctx, l, "allocate audio_ids", func(tx *txn) (first int64, err error) {
		var highest sql.NullInt64
		err = tx.QueryRowContext(ctx, `SELECT MAX(audio_id) FROM upload_key WHERE source = $1`, source).Scan(&highest)
		if err != nil {
			return 0, failed("read the highest audio_id", err)
		}
		err = tx.QueryRowContext(ctx, `SELECT next_id FROM upload_counter WHERE source = $1`, source).Scan(&first)
		if _, err := found("read the next audio_id", err); err != nil {
			return 0, err
		}
		if highest.Int64 > math.MaxInt64-n-1 || first > math.MaxInt64-n-1 {
			return 0, fmt.Errorf("source %s has no free audio_id above its highest: choose audio_ids by hand: %w", source, ErrInvalid)
		}
		first = max(first, highest.Int64+1, 1)
		return first, tx.exec(ctx, "write the next audio_id", `INSERT INTO upload_counter (source, next_id) VALUES ($1, $2)
			ON CONFLICT (source) DO UPDATE SET next_id = excluded.next_id`, source, first+n)
	})
}
