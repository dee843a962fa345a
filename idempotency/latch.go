package idempotency

import (
	"context"
	"fmt"
	"time"
)

// LatchRequest asks for the right to send in one call.
type LatchRequest struct {
	Key        string
	AttemptID  string // of one HTTP request; never used for another
	Source     string
	AudioID    int64
	SHA256     string        // of the content; "" for a URL
	Timeout    time.Duration // of the call, from At
	Verify     Verify        // how the upload is verified if it becomes uncertain; "" = hold
	Remembered Mark          // the latest mark that is stored outside the database; zero = none
	At         time.Time     // read before Latch, with its monotonic reading; becomes sent_at, where every wait begins
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
	Mark       Mark // must be remembered outside the database before the first byte

	at        time.Time // of the latch, not later than its commit
	firstByte time.Duration
}

// Latch takes the one send of the key's current generation. If it returns nil, the latch is on disk. The caller may make
// its call if Fresh returns nil right before the first byte. A repeated request of the same attempt gets the same latch.
//
// After an error the caller makes no call and reports tasks.LatchReleased for its attempt id, because the latch may exist
// if the result of the commit is unknown (deadline, I/O error). *TakenError, *SlotTakenError, *SlotBusyError and
// *BehindError name the obstacle. Every other error means that the database failed.
func (l *Ledger) Latch(ctx context.Context, a LatchRequest) (Latched, error) {
	if err := a.validate(); err != nil {
		return Latched{}, failed("latch an upload", err)
	}
	return write(ctx, l, "latch an upload", func(tx *txn) (Latched, error) {
		got := Latched{at: a.At, firstByte: l.cfg.FirstByte}
		mine, latched, err := sendOf(ctx, tx, a.AttemptID)
		if err != nil {
			return got, err
		}
		if latched {
			got.Generation, got.at = mine.Generation, repeatedAt(a.At, mine.SentAt)
			got.Mark = Mark{Ledger: tx.head.Ledger, Seq: mine.Seq, Token: mine.AttemptID}
			return got, unchanged(repeated(a, mine))
		}
		if err := check(ctx, tx, tx.head, a.Remembered); err != nil {
			return got, err
		}
		if got.Generation, err = l.free(ctx, tx, a); err != nil {
			return got, err
		}
		err = insertSend(ctx, tx, a, got.Generation)
		got.Mark = tx.head
		return got, err
	})
}

// repeatedAt returns sentAt with the monotonic reading of now, so that Fresh measures the whole age with both clocks. It
// returns now if the clock was set back.
func repeatedAt(now, sentAt time.Time) time.Time {
	return now.Add(-max(now.Round(0).Sub(sentAt), 0))
}

// repeated checks the repeated request of an attempt that latched before.
func repeated(a LatchRequest, mine Send) error {
	if mine.Key != a.Key || mine.Source != a.Source || mine.AudioID != a.AudioID {
		return fmt.Errorf("attempt %s is latched for another upload: %w", a.AttemptID, ErrInvalid)
	}
	if mine.State != Sent {
		return &TakenError{Send: mine}
	}
	return nil
}

// free returns the key's current generation if it may be sent. A task that was enqueued by hand has no claim: free then
// writes its key and takes its slot.
func (l *Ledger) free(ctx context.Context, tx *txn, a LatchRequest) (generation int64, err error) {
	slot := Slot{Source: a.Source, AudioID: a.AudioID, Key: a.Key, SHA256: a.SHA256, Since: a.At}
	st, err := l.status(ctx, tx, a.Key)
	if err != nil {
		return 0, err
	}
	if !st.Known {
		if err := insertKey(ctx, tx, slot); err != nil {
			return 0, err
		}
		if st, err = l.status(ctx, tx, a.Key); err != nil {
			return 0, err
		}
	}
	if err := st.same(a.Source, a.AudioID, a.SHA256); err != nil {
		return 0, err
	}
	if err := st.MaySend(a.At); err != nil {
		return 0, err
	}
	if st.Owner.Key == "" {
		err = putSlot(ctx, tx, slot)
	}
	return st.Generation, err
}

func insertSend(ctx context.Context, tx *txn, a LatchRequest, generation int64) error {
	if a.Verify == "" {
		a.Verify = VerifyHold
	}
	if err := tx.raise(ctx, tx.head.Seq+1, a.AttemptID); err != nil {
		return err
	}
	return tx.exec(ctx, "write the latch", `INSERT INTO upload
		(key, generation, attempt_id, seq, source, audio_id, sha256, state, sent_at, timeout_ms, verify)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		a.Key, generation, a.AttemptID, tx.head.Seq, a.Source, a.AudioID, a.SHA256, string(Sent),
		a.At.UnixMilli(), ceilMilli(a.Timeout), string(a.Verify))
}

// ceilMilli rounds up, so that a wait is never shorter than configured.
func ceilMilli(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Fresh returns nil while the first byte may be sent, and a *StaleError when more than Config.FirstByte has passed since
// the latch. Call it last, with time.Now(). A stale attempt makes no call and reports tasks.LatchReleased.
//
// The age is the larger one of wall clock and monotonic clock: the monotonic clock stops while a machine sleeps, and the
// wall clock may be set back. If now is before the latch, the clocks cannot be trusted and the latch is stale.
func (l Latched) Fresh(now time.Time) error {
	wall := now.Round(0).Sub(l.at.Round(0))
	age := max(now.Sub(l.at), wall) // Sub uses the monotonic clock where both times have it
	if age < 0 || age > l.firstByte {
		return &StaleError{Age: age, Limit: l.firstByte}
	}
	return nil
}
