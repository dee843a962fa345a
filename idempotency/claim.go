package idempotency

import (
	"context"
	"fmt"
	"time"
)

// Claim asks for a slot, before its upload is enqueued.
type Claim struct {
	Source  string
	AudioID int64
	Key     string
	SHA256  string // "" for a URL
	// Replace takes the slot from other content: that content is not sent any more,
	// and the slot at AudD is overwritten.
	Replace bool
	// Allotted marks an AudioID from NextID: if another slot of the source already
	// holds the same content, nothing is claimed and SameContent names that slot.
	// Of concurrent claims only the first gets a slot.
	Allotted bool
	By       string // who, for the audit trail of a replacement
	At       time.Time
}

// Claimed is the result of a claim.
type Claimed struct {
	// Refused is a *SlotTakenError, or wraps ErrInvalid; nil when the slot is the key's.
	Refused error
	// Generation and State are the key's: Settled means that the content is already in the slot.
	Generation int64
	State      State
	// Replaced is the slot as it was, when the claim took it from other content.
	Replaced *Slot
	// Reopened means that this content was in the slot before, was replaced, and
	// may now be sent once more.
	Reopened bool
	// SameContent lists other slots of the source with the same content: a
	// warning, since each costs an upload. At most 20. An allotted slot is not
	// claimed beside them.
	SameContent []Slot
}

// Claim asks for the slots of one or more uploads in one transaction; a refused
// claim does not touch the others. Repeating a claim changes nothing. A slot
// whose owner was rejected by AudD and that holds nothing else is free for
// other content. The results are in the order of the claims.
func (l *Ledger) Claim(ctx context.Context, claims ...Claim) ([]Claimed, error) {
	var out []Claimed
	err := l.write(ctx, "claim upload slots", func(ctx context.Context, tx *txn) error {
		for _, c := range claims {
			got, err := l.claim(ctx, tx, c)
			if err != nil {
				return err
			}
			out = append(out, got)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (l *Ledger) claim(ctx context.Context, tx *txn, c Claim) (Claimed, error) {
	k, known, err := keyOf(ctx, tx, c.Key)
	if err != nil {
		return Claimed{}, err
	}
	got := Claimed{Refused: c.validate()}
	if known && got.Refused == nil {
		got.Refused = k.same(c.Source, c.AudioID, c.SHA256)
	}
	if got.Refused != nil {
		return got, nil //nolint:nilerr // the refusal of one claim does not affect the others
	}
	if c.Allotted && !known {
		if got.SameContent, err = sameContent(ctx, tx, c); err != nil || len(got.SameContent) > 0 {
			return got, err
		}
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
			got.Refused = &SlotTakenError{Source: c.Source, AudioID: c.AudioID, Owner: slot.Key, Since: slot.Since}
			return got, nil
		}
		got.Replaced = &slot
	}
	if !known {
		k = keyRow{key: c.Key, source: c.Source, audioID: c.AudioID, sha: c.SHA256, since: c.At}
		if err := insertKey(ctx, tx, k); err != nil {
			return got, err
		}
	}
	if !taken || got.Replaced != nil {
		if err := takeOver(ctx, tx, c, &got); err != nil {
			return got, err
		}
	}
	if got.SameContent, err = sameContent(ctx, tx, c); err != nil {
		return got, err
	}
	st, err := l.look(ctx, tx, c.Key)
	got.Generation, got.State = st.Generation, st.State
	return got, err
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

// takeOver makes the key the owner of the slot. Content that returns to a slot
// which other content may have overwritten may be sent once more, because the
// replacement is an operator's decision.
func takeOver(ctx context.Context, tx *txn, c Claim, got *Claimed) error {
	if err := putSlot(ctx, tx, Slot{Source: c.Source, AudioID: c.AudioID, Key: c.Key, SHA256: c.SHA256, Since: c.At}); err != nil {
		return err
	}
	if got.Replaced == nil {
		return nil
	}
	act := Action{By: c.By, Why: fmt.Sprintf("replace audio_id %d of source %s", c.AudioID, c.Source), At: c.At}
	s, sent, err := currentSend(ctx, tx, c.Key)
	if err != nil {
		return err
	}
	if sent && s.State == Settled {
		if got.Reopened, err = exists(ctx, tx, `SELECT EXISTS (SELECT 1 FROM upload
			WHERE source = $1 AND audio_id = $2 AND key <> $3 AND seq > $4 AND state IN ('sent', 'settled', 'uncertain'))`,
			c.Source, c.AudioID, c.Key, s.Seq); err != nil {
			return err
		}
	}
	if got.Reopened {
		if err := raiseGeneration(ctx, tx, c.Key, s.Generation); err != nil {
			return err
		}
	}
	if err := tx.audit(ctx, act, "takes the slot from "+got.Replaced.Key, c.Key, s.Generation); err != nil {
		return err
	}
	return tx.audit(ctx, act, "loses the slot to "+c.Key, got.Replaced.Key, 0)
}

// used reports whether a slot holds or may still receive content of another key:
// something was sent to it, or its owner still waits.
func used(ctx context.Context, q querier, slot Slot, key string) (bool, error) {
	sent, err := sharedSlot(ctx, q, Send{Source: slot.Source, AudioID: slot.AudioID, Key: key})
	if err != nil || sent {
		return sent, err
	}
	s, found, err := currentSend(ctx, q, slot.Key)
	return !found || s.State != Rejected, err
}

func exists(ctx context.Context, q querier, query string, args ...any) (is bool, err error) {
	if err := q.QueryRowContext(ctx, query, args...).Scan(&is); err != nil {
		return false, fmt.Errorf("look for sends: %w", err)
	}
	return is, nil
}

func sameContent(ctx context.Context, q querier, c Claim) ([]Slot, error) {
	if c.SHA256 == "" {
		return nil, nil
	}
	rows, err := q.QueryContext(ctx, `SELECT audio_id, key, since FROM upload_slot
		WHERE source = $1 AND sha256 = $2 AND audio_id <> $3 ORDER BY audio_id LIMIT 20`, c.Source, c.SHA256, c.AudioID)
	if err != nil {
		return nil, fmt.Errorf("look for the same content: %w", err)
	}
	defer rows.Close()
	var out []Slot
	for rows.Next() {
		s := Slot{Source: c.Source, SHA256: c.SHA256}
		var since int64
		if err := rows.Scan(&s.AudioID, &s.Key, &since); err != nil {
			return nil, fmt.Errorf("look for the same content: %w", err)
		}
		s.Since = instant(since)
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look for the same content: %w", err)
	}
	return out, nil
}
