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
	Delay      time.Duration // from the uncertain state to the first try, and between tries: AudD needs time to index an upload
	Tries      int           // the largest number of tries, at least 1
	At         time.Time
}

// BeginVerify starts a verification. It returns true to one caller, which then recognizes the audio and reports with
// Verified. The try counts even if its worker dies. It returns false if another caller has started it, if it is not due, if
// all tries are used, or if other content was sent to the slot before, because a match would then prove nothing.
func (l *Ledger) BeginVerify(ctx context.Context, r VerifyRequest) (bool, error) {
	if r.At.IsZero() || r.Tries < 1 || r.Delay < 0 {
		return false, fmt.Errorf("verify an upload: time, tries and delay are required: %w", ErrInvalid)
	}
	return write(ctx, l, "verify an upload", func(tx *txn) (bool, error) {
		s, uncertain, err := uncertainSend(ctx, tx, r.Key, r.Generation)
		if err != nil {
			return false, err
		}
		last := s.EndedAt
		if s.TriedAt.After(last) {
			last = s.TriedAt
		}
		if !uncertain || s.Verify != VerifyRecognize || s.Tries >= r.Tries || r.At.Before(last.Add(r.Delay)) {
			return false, errUnchanged
		}
		shared, err := sharedSlot(ctx, tx, Slot{Source: s.Source, AudioID: s.AudioID, Key: s.Key})
		if err != nil {
			return false, err
		}
		if shared {
			act := Action{By: "verify", Why: "other content was sent to this audio_id before: a match would prove nothing", At: r.At}
			return false, tx.auditOnce(ctx, act, "not verifiable", s)
		}
		return true, tx.exec(ctx, "count a verification attempt", `UPDATE upload SET verify_tries = verify_tries + 1, verify_at = $1
			WHERE key = $2 AND generation = $3`, r.At.UnixMilli(), s.Key, s.Generation)
	})
}

// Verification is the result of recognizing the audio of an uncertain upload.
type Verification struct {
	Key        string
	Generation int64
	Hit        *int64 // the audio_id that AudD recognized, nil = none
	RequestID  string
	At         time.Time
}

// Verified settles an uncertain upload if AudD recognized the upload's audio_id. Otherwise the upload stays uncertain and the
// audit trail records the result. It returns the status of the key.
func (l *Ledger) Verified(ctx context.Context, v Verification) (UploadStatus, error) {
	if v.At.IsZero() {
		return UploadStatus{}, fmt.Errorf("verify an upload: the time is required: %w", ErrInvalid)
	}
	return write(ctx, l, "verify an upload", func(tx *txn) (UploadStatus, error) {
		s, uncertain, err := uncertainSend(ctx, tx, v.Key, v.Generation)
		if err == nil && uncertain {
			err = verified(ctx, tx, s, v)
		}
		if err != nil {
			return UploadStatus{}, err
		}
		return l.status(ctx, tx, v.Key)
	})
}

func verified(ctx context.Context, tx *txn, s Send, v Verification) error {
	shared, err := sharedSlot(ctx, tx, Slot{Source: s.Source, AudioID: s.AudioID, Key: s.Key})
	if err != nil {
		return err
	}
	act := Action{By: "verify", At: v.At, Why: "the recognition found no upload"}
	if v.Hit != nil {
		act.Why = fmt.Sprintf("the recognition found audio_id %d", *v.Hit)
	}
	hit := v.Hit != nil && *v.Hit == s.AudioID
	if hit && shared {
		act.Why = "other content was sent to this audio_id before: the match proves nothing"
	}
	if !hit || shared {
		return tx.audit(ctx, act, "not verified", s)
	}
	err = putState(ctx, tx, s, change{
		to: Settled, outcome: tasks.Uploaded, reason: "verified by recognition", requestID: v.RequestID, at: v.At,
	})
	if err != nil {
		return err
	}
	return tx.audit(ctx, act, "verified", s)
}

// uncertainSend returns the key's send. It returns false unless the send is uncertain and of this generation.
func uncertainSend(ctx context.Context, tx *txn, key string, generation int64) (Send, bool, error) {
	e, _, err := entryOf(ctx, tx, key)
	return e.Send, e.State == Uncertain && e.Generation == generation, err
}
