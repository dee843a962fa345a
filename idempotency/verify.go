package idempotency

import (
	"context"
	"fmt"
	"time"

	"reprise/tasks"
)

// VerifyRequest asks to verify an uncertain upload by one recognition, which is billed.
type VerifyRequest struct {
	Key        string
	Generation int64
	// Delay is the least time between the upload becoming uncertain and the first
	// try, and between two tries, because AudD needs time to index an upload.
	// Tries is the largest number of tries, at least 1.
	Delay time.Duration
	Tries int
	At    time.Time
}

// BeginVerify starts a verification: it returns true for one caller, which then
// recognizes the audio and reports with Verified. The try counts even if its
// worker dies. It returns false if another caller has started it, if it is not due
// or used up, or if other content was sent to the slot before, so that a match
// would prove nothing.
func (l *Ledger) BeginVerify(ctx context.Context, t VerifyRequest) (bool, error) {
	if t.At.IsZero() || t.Tries < 1 || t.Delay < 0 {
		return false, fmt.Errorf("verify an upload: time, tries and delay are required: %w", ErrInvalid)
	}
	var mine bool
	err := l.write(ctx, "verify an upload", func(ctx context.Context, tx *txn) error {
		s, found, err := l.uncertain(ctx, tx, t.Key, t.Generation)
		if err != nil {
			return err
		}
		last := s.EndedAt
		if s.TriedAt.After(last) {
			last = s.TriedAt
		}
		if !found || s.Verify != VerifyRecognize || s.Tries >= t.Tries || t.At.Before(last.Add(t.Delay)) {
			return errUnchanged
		}
		shared, err := sharedSlot(ctx, tx, s)
		if err != nil {
			return err
		}
		if shared {
			act := Action{By: "verify", Why: "other content was sent to this audio_id before: a match would prove nothing", At: t.At}
			return tx.auditOnce(ctx, act, "not verifiable", s)
		}
		mine = true
		_, err = tx.ExecContext(ctx, `UPDATE upload SET verify_tries = verify_tries + 1, verify_at = $1
			WHERE key = $2 AND generation = $3`, t.At.UnixMilli(), s.Key, s.Generation)
		if err != nil {
			return fmt.Errorf("count the try: %w", err)
		}
		return nil
	})
	return mine && err == nil, err
}

// Verification is the result of recognizing the audio of an uncertain upload.
type Verification struct {
	Key        string
	Generation int64
	// Hit is the audio_id in AudD's answer, nil if there is none.
	Hit       *int64
	RequestID string
	At        time.Time
}

// Verified settles an uncertain upload if the match has the upload's audio_id.
// Otherwise the upload stays uncertain and the audit trail records the result. It
// returns the status of the key.
func (l *Ledger) Verified(ctx context.Context, v Verification) (UploadStatus, error) {
	if v.At.IsZero() {
		return UploadStatus{}, fmt.Errorf("verify an upload: the time is required: %w", ErrInvalid)
	}
	var st UploadStatus
	err := l.write(ctx, "verify an upload", func(ctx context.Context, tx *txn) error {
		s, found, err := l.uncertain(ctx, tx, v.Key, v.Generation)
		if err != nil {
			return err
		}
		if !found {
			st, err = l.look(ctx, tx, v.Key)
			return err
		}
		if err := verified(ctx, tx, s, v); err != nil {
			return err
		}
		st, err = l.look(ctx, tx, v.Key)
		return err
	})
	if err != nil {
		return UploadStatus{}, err
	}
	return st, nil
}

func verified(ctx context.Context, tx *txn, s Send, v Verification) error {
	shared, err := sharedSlot(ctx, tx, s)
	if err != nil {
		return err
	}
	act := Action{By: "verify", At: v.At}
	switch {
	case v.Hit == nil:
		act.Why = "the recognition found no upload"
	case *v.Hit != s.AudioID:
		act.Why = fmt.Sprintf("the recognition found audio_id %d", *v.Hit)
	case shared:
		act.Why = "other content was sent to this audio_id before: the match proves nothing"
	default:
		act.Why = fmt.Sprintf("the recognition found audio_id %d", *v.Hit)
		err := putState(ctx, tx, s, change{to: Settled, outcome: tasks.Uploaded, reason: "verified by recognition", requestID: v.RequestID, at: v.At})
		if err != nil {
			return err
		}
		return tx.audit(ctx, act, "verified", s.Key, s.Generation)
	}
	return tx.audit(ctx, act, "not verified", s.Key, s.Generation)
}

// uncertain returns the key's send if it is still uncertain in that generation.
func (l *Ledger) uncertain(ctx context.Context, tx *txn, key string, generation int64) (Send, bool, error) {
	s, found, err := currentSend(ctx, tx, key)
	if err != nil {
		return Send{}, false, err
	}
	return s, found && s.Generation == generation && s.State == Uncertain, nil
}

// sharedSlot reports whether other content may have reached the send's slot:
// two recordings may sound the same to AudD.
func sharedSlot(ctx context.Context, q querier, s Send) (bool, error) {
	return exists(ctx, q, `SELECT EXISTS (SELECT 1 FROM upload
		WHERE source = $1 AND audio_id = $2 AND key <> $3 AND state IN ('sent', 'settled', 'uncertain'))`, s.Source, s.AudioID, s.Key)
}
