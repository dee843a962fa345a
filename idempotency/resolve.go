package idempotency

import (
	"context"
	"fmt"
	"time"

	"reprise/tasks"
)

// Resolution is how an operator resolves an uncertain upload.
type Resolution string

// The closed set of resolutions.
const (
	AsSettled Resolution = "settled" // it arrived
	AsRetry   Resolution = "retry"   // it did not, or may be sent twice: send it again
)

// Resolved is the result of a resolution.
type Resolved struct {
	Key        string
	Generation int64 // the current one; after AsRetry the one that may send
	// Already means that the upload was resolved in this way before. Nothing
	// changed; the caller repeats the steps that follow a resolution.
	Already bool
}

// Resolve settles an uncertain upload or lets it be sent again. A send that
// without a conclusion counts as uncertain once its wait is over. AsRetry is refused with *TooEarlyError before sent_at + timeout +
// Config.RetryWait: until then the earlier send may still be in flight. Other
// states give a *NotResolvableError. Repeating a
// resolution is harmless.
func (l *Ledger) Resolve(ctx context.Context, key string, as Resolution, act Action) (Resolved, error) {
	if as != AsSettled && as != AsRetry {
		return Resolved{}, fmt.Errorf("resolve an upload as %q: must be settled or retry: %w", as, ErrInvalid)
	}
	if err := act.validate(); err != nil {
		return Resolved{}, fmt.Errorf("resolve an upload: %w", err)
	}
	got := Resolved{Key: key}
	err := l.write(ctx, "resolve an upload", func(ctx context.Context, tx *txn) error {
		st, err := l.look(ctx, tx, key)
		if err != nil {
			return err
		}
		if !st.Known {
			return fmt.Errorf("key %s: %w", key, ErrUnknownKey)
		}
		got.Generation = st.Generation
		if got.Already, err = resolvedSo(ctx, tx, st, as); err != nil || got.Already {
			return unchanged(err)
		}
		if err := l.mayResolve(st, as, act.At); err != nil {
			return err
		}
		if st.State == Sent {
			if err := expire(ctx, tx, st.Send, act.At); err != nil {
				return err
			}
		}
		if as == AsRetry {
			got.Generation++
			err = raiseGeneration(ctx, tx, key, st.Generation)
		} else {
			err = putState(ctx, tx, st.Send, change{to: Settled, outcome: tasks.Uploaded, reason: "resolved by " + act.By,
				requestID: st.Send.RequestID, at: act.At})
		}
		if err != nil {
			return err
		}
		return tx.audit(ctx, act, "resolve as "+string(as), key, st.Generation)
	})
	if err != nil {
		return Resolved{}, err
	}
	return got, nil
}

// resolvedSo reports whether the same resolution was made before and still counts.
func resolvedSo(ctx context.Context, q querier, st UploadStatus, as Resolution) (bool, error) {
	generation := st.Generation
	switch {
	case as == AsSettled && st.State == Settled:
		return true, nil
	case as == AsRetry && st.State == Free:
		generation--
	default:
		return false, nil
	}
	return exists(ctx, q, `SELECT EXISTS (SELECT 1 FROM upload_audit WHERE key = $1 AND generation = $2 AND what = $3)`,
		st.key, generation, "resolve as "+string(as))
}

func (l *Ledger) mayResolve(st UploadStatus, as Resolution, now time.Time) error {
	switch {
	case st.State == Sent && now.Before(st.Until):
		return &TooEarlyError{Until: st.Until}
	case st.State != Sent && st.State != Uncertain:
		return &NotResolvableError{State: st.State, As: as}
	}
	until := st.Send.SentAt.Add(st.Send.Timeout + l.cfg.RetryWait)
	if as == AsRetry && now.Before(until) {
		return &TooEarlyError{Until: until}
	}
	return nil
}

// Reopen lets a settled or rejected upload be sent once more, because an
// operator forces it; it is billed again. from is the generation that the caller
// read; if the key has a later one, nothing changes, so the call may be repeated
// after a crash. An upload that is uncertain or in flight is resolved, not reopened.
func (l *Ledger) Reopen(ctx context.Context, key string, from int64, act Action) (generation int64, err error) {
	if err := act.validate(); err != nil {
		return 0, fmt.Errorf("reopen an upload: %w", err)
	}
	err = l.write(ctx, "reopen an upload", func(ctx context.Context, tx *txn) error {
		st, err := l.look(ctx, tx, key)
		if err != nil {
			return err
		}
		generation = st.Generation
		switch {
		case !st.Known:
			return fmt.Errorf("key %s: %w", key, ErrUnknownKey)
		case st.Generation > from, st.State == Free:
			return errUnchanged
		case st.State != Settled && st.State != Rejected:
			return &NotResolvableError{State: st.State, As: AsRetry}
		}
		if err := l.mayReopen(ctx, tx, st, act.At); err != nil {
			return err
		}
		generation++
		if err := raiseGeneration(ctx, tx, key, st.Generation); err != nil {
			return err
		}
		return tx.audit(ctx, act, "reopen", key, st.Generation)
	})
	if err != nil {
		return 0, err
	}
	return generation, nil
}

// mayReopen requires the wait of a retry if the send was settled by a verification
// or an operator: only the attempt itself knows that its call is over.
func (l *Ledger) mayReopen(ctx context.Context, q querier, st UploadStatus, now time.Time) error {
	until := st.Send.SentAt.Add(st.Send.Timeout + l.cfg.RetryWait)
	if st.State != Settled || !now.Before(until) {
		return nil
	}
	byOther, err := exists(ctx, q, `SELECT EXISTS (SELECT 1 FROM upload_audit
		WHERE key = $1 AND generation = $2 AND what IN ('resolve as settled', 'verified'))`, st.key, st.Generation)
	if err == nil && byOther {
		err = &TooEarlyError{Until: until}
	}
	return err
}
