package idempotency

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// LatchRequest asks for the right to send in one call.
type LatchRequest struct {
	Key       string
	AttemptID string // of one HTTP request, never used for another
	Source    string
	AudioID   int64
	SHA256    string        // of the content; "" for a URL
	Timeout   time.Duration // of the call, counted from At or earlier
	Verify    Verify        // what to do if it becomes uncertain; "" = hold
	// Remembered is the latest mark known outside the database, zero for none.
	Remembered Mark
	// At is now, with its monotonic reading, read before Latch: it becomes
	// sent_at, from which every later wait counts.
	At time.Time
}

func (a LatchRequest) validate() error {
	switch {
	case a.Key == "", a.AttemptID == "", a.Source == "":
		return fmt.Errorf("key, attempt id and source are required: %w", ErrInvalid)
	case a.AudioID < 0:
		return fmt.Errorf("audio_id %d: must be 0 or more: %w", a.AudioID, ErrInvalid)
	case a.Timeout <= 0, a.At.IsZero():
		return fmt.Errorf("a timeout and the time are required: %w", ErrInvalid)
	case a.Verify != "" && a.Verify != VerifyHold && a.Verify != VerifyRecognize:
		return fmt.Errorf("verify %q: must be hold or recognize: %w", a.Verify, ErrInvalid)
	}
	return nil
}

// Latched is the right to send once.
type Latched struct {
	Generation int64
	// Mark is to be remembered outside the database before the first byte.
	Mark Mark
	// CommittedAt is LatchRequest.At, which is not later than the commit.
	CommittedAt time.Time
	// Repeated means that this attempt already had the latch because an earlier
	// reply was lost. It is still the right to send once.
	Repeated bool

	firstByte time.Duration
}

// Latch takes the one send of the key's current generation. If it returns nil,
// the latch is on disk and the caller may make its call, provided Fresh returns
// nil right before the first byte.
//
// On every error the caller makes no call and reports tasks.LatchReleased for its
// attempt id: when the commit's outcome is not known (deadline, I/O error), the
// latch may exist although nothing is sent. *TakenError, *SlotTakenError,
// *SlotBusyError and *BehindError name the obstacle; any other error means that
// the ledger did not answer.
func (l *Ledger) Latch(ctx context.Context, a LatchRequest) (Latched, error) {
	if err := a.validate(); err != nil {
		return Latched{}, fmt.Errorf("latch an upload: %w", err)
	}
	got := Latched{CommittedAt: a.At, firstByte: l.cfg.FirstByte}
	err := l.write(ctx, "latch an upload", func(ctx context.Context, tx *txn) error {
		mine, found, err := sendOf(ctx, tx, a.AttemptID)
		if err != nil {
			return err
		}
		if found {
			got.Repeated, got.Generation, got.CommittedAt = true, mine.Generation, repeatedAt(a.At, mine.SentAt)
			got.Mark = Mark{Ledger: tx.head.Ledger, Seq: mine.Seq, Token: mine.AttemptID}
			return unchanged(l.repeated(a, mine))
		}
		if err := check(ctx, tx, tx.head, a.Remembered); err != nil {
			return err
		}
		if got.Generation, err = l.free(ctx, tx, a); err != nil {
			return err
		}
		if err := l.takeSlot(ctx, tx, a); err != nil {
			return err
		}
		if err := insertSend(ctx, tx, a, got.Generation); err != nil {
			return err
		}
		got.Mark = tx.head
		return nil
	})
	if err != nil {
		return Latched{}, err
	}
	return got, nil
}

// repeatedAt is sent_at with the monotonic reading of now, so that Fresh sees
// the whole age by both clocks. A clock that was set back makes it now.
func repeatedAt(now, sentAt time.Time) time.Time {
	return now.Add(-max(now.Round(0).Sub(sentAt), 0))
}

// repeated handles a repeated request of the same attempt. It changes nothing.
func (l *Ledger) repeated(a LatchRequest, mine Send) error {
	if mine.Key != a.Key || mine.Source != a.Source || mine.AudioID != a.AudioID {
		return fmt.Errorf("attempt %s latched for another upload: %w", a.AttemptID, ErrInvalid)
	}
	if mine.State != Sent {
		return l.taken(mine)
	}
	return nil
}

func (l *Ledger) taken(s Send) *TakenError {
	e := &TakenError{Generation: s.Generation, State: s.State, AttemptID: s.AttemptID, Since: s.SentAt}
	if s.State == Sent {
		e.Until = l.deadline(s)
	}
	return e
}

// deadline is when a send without a conclusion becomes uncertain.
func (l *Ledger) deadline(s Send) time.Time { return s.SentAt.Add(s.Timeout + l.cfg.Margin) }

// free returns the key's current generation if nothing was sent in it. It
// makes the key's row when a raw task was enqueued without a claim.
func (l *Ledger) free(ctx context.Context, tx *txn, a LatchRequest) (generation int64, err error) {
	k, found, err := keyOf(ctx, tx, a.Key)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, insertKey(ctx, tx, keyRow{key: a.Key, source: a.Source, audioID: a.AudioID, sha: a.SHA256, since: a.At})
	}
	if err := k.same(a.Source, a.AudioID, a.SHA256); err != nil {
		return 0, err
	}
	s, found, err := currentSend(ctx, tx, a.Key)
	if err != nil {
		return 0, err
	}
	if found {
		return 0, l.taken(s)
	}
	return k.generation, nil
}

// takeSlot checks that the key owns the slot and that no other content is in
// flight to it.
func (l *Ledger) takeSlot(ctx context.Context, tx *txn, a LatchRequest) error {
	slot, found, err := slotOf(ctx, tx, a.Source, a.AudioID)
	if err != nil {
		return err
	}
	if found && slot.Key != a.Key {
		return &SlotTakenError{Source: a.Source, AudioID: a.AudioID, Owner: slot.Key, Since: slot.Since}
	}
	if !found {
		if err := putSlot(ctx, tx, Slot{Source: a.Source, AudioID: a.AudioID, Key: a.Key, SHA256: a.SHA256, Since: a.At}); err != nil {
			return err
		}
	}
	key, until, err := l.inFlight(ctx, tx, slotRef{a.Source, a.AudioID, a.Key})
	if err != nil {
		return err
	}
	if a.At.Before(until) {
		return &SlotBusyError{Source: a.Source, AudioID: a.AudioID, Key: key, Until: until}
	}
	return nil
}

// slotRef is a slot seen from a key.
type slotRef struct {
	source  string
	audioID int64
	key     string
}

// inFlight finds the send of another key that occupies the slot longest.
func (l *Ledger) inFlight(ctx context.Context, q querier, at slotRef) (key string, until time.Time, err error) {
	var over int64
	err = q.QueryRowContext(ctx, `SELECT key, sent_at + timeout_ms FROM upload
		WHERE source = $1 AND audio_id = $2 AND key <> $3 AND state = $4
		ORDER BY sent_at + timeout_ms DESC LIMIT 1`, at.source, at.audioID, at.key, string(Sent)).Scan(&key, &over)
	if errors.Is(err, sql.ErrNoRows) {
		return "", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("look for sends into the slot: %w", err)
	}
	return key, instant(over).Add(l.cfg.Margin), nil
}

func insertSend(ctx context.Context, tx *txn, a LatchRequest, generation int64) error {
	if a.Verify == "" {
		a.Verify = VerifyHold
	}
	if err := tx.raise(ctx, tx.head.Seq+1, a.AttemptID); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO upload
		(key, generation, attempt_id, seq, source, audio_id, sha256, state, sent_at, timeout_ms, verify)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		a.Key, generation, a.AttemptID, tx.head.Seq, a.Source, a.AudioID, a.SHA256, string(Sent),
		a.At.UnixMilli(), ceilMilli(a.Timeout), string(a.Verify))
	if err != nil {
		return fmt.Errorf("write the latch: %w", err)
	}
	return nil
}

// ceilMilli rounds up, so that a wait is never shorter than configured.
func ceilMilli(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
