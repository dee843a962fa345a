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
	AsRetry   Resolution = "retry"   // it did not arrive, or may be sent twice: send it again
)

// Resolved is the result of a resolution.
type Resolved struct {
	Generation int64 // the current one; after AsRetry the one that may send
	// Already means that the upload was resolved this way before. Nothing changed. The caller repeats the steps that
	// follow a resolution.
	Already bool
}

// Resolve settles an uncertain upload, or allows one more send. A send without a conclusion counts as uncertain once its
// wait is over. It fails with *TooEarlyError while the send may be in flight: before sent_at + timeout + Config.RetryWait
// for AsRetry. It fails with *NotResolvableError in other states. Repeating a resolution is harmless.
func (l *Ledger) Resolve(ctx context.Context, key string, as Resolution, act Action) (Resolved, error) {
	if as != AsSettled && as != AsRetry {
		return Resolved{}, fmt.Errorf("resolve an upload as %q: must be settled or retry: %w", as, ErrInvalid)
	}
	if err := act.validate(); err != nil {
		return Resolved{}, failed("resolve an upload", err)
	}
	return write(ctx, l, "resolve an upload", func(tx *txn) (Resolved, error) {
		st, err := l.known(ctx, tx, key)
		if err != nil {
			return Resolved{}, err
		}
		got := Resolved{Generation: st.Generation}
		if got.Already, err = resolvedBefore(ctx, tx, st, as); err != nil || got.Already {
			return got, unchanged(err)
		}
		if err := l.mayResolve(st, as, act.At); err != nil {
			return got, err
		}
		if st.State == Sent {
			if err := expire(ctx, tx, st.Send, act.At); err != nil {
				return got, err
			}
		}
		if as == AsRetry {
			got.Generation++
			err = raiseGeneration(ctx, tx, key, st.Generation)
		} else {
			err = putState(ctx, tx, st.Send, change{
				to: Settled, outcome: tasks.Uploaded, reason: "resolved by " + act.By, requestID: st.Send.RequestID, at: act.At,
			})
		}
		if err != nil {
			return got, err
		}
		return got, tx.audit(ctx, act, "resolve as "+string(as), st.Send)
	})
}

// resolvedBefore reports whether the same resolution was made before and still holds.
func resolvedBefore(ctx context.Context, q querier, st UploadStatus, as Resolution) (bool, error) {
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
		st.Key, generation, "resolve as "+string(as))
}

func (l *Ledger) mayResolve(st UploadStatus, as Resolution, now time.Time) error {
	switch {
	case st.State == Sent && now.Before(st.Until):
		return &TooEarlyError{Until: st.Until}
	case st.State != Sent && st.State != Uncertain:
		return &NotResolvableError{State: st.State, As: as}
	case as == AsRetry:
		return l.mayRetry(st.Send, now)
	}
	return nil
}

// mayRetry returns a *TooEarlyError while the send may still be in flight.
func (l *Ledger) mayRetry(s Send, now time.Time) error {
	if until := s.SentAt.Add(s.Timeout + l.cfg.RetryWait); now.Before(until) {
		return &TooEarlyError{Until: until}
	}
	return nil
}

// Reopen allows one more send of a settled or rejected upload, because an operator forces it. It returns the key's current
// generation. AudD bills the upload again. from is the generation that the caller read. If the key has a later one, nothing
// changes, so a call may be repeated after a crash. An uncertain upload must be resolved instead.
func (l *Ledger) Reopen(ctx context.Context, key string, from int64, act Action) (generation int64, err error) {
	if err := act.validate(); err != nil {
		return 0, failed("reopen an upload", err)
	}
	return write(ctx, l, "reopen an upload", func(tx *txn) (int64, error) {
		st, err := l.known(ctx, tx, key)
		switch {
		case err != nil:
			return 0, err
		case st.Generation > from, st.State == Free:
			return st.Generation, errUnchanged
		case st.State != Settled && st.State != Rejected:
			return 0, &NotResolvableError{State: st.State, As: AsRetry}
		}
		if err := l.mayReopen(ctx, tx, st, act.At); err != nil {
			return 0, err
		}
		if err := raiseGeneration(ctx, tx, key, st.Generation); err != nil {
			return 0, err
		}
		return st.Generation + 1, tx.audit(ctx, act, "reopen", st.Send)
	})
}

// mayReopen requires the wait of a retry if a verification or an operator settled the send: only the attempt itself can
// tell that its call is over.
func (l *Ledger) mayReopen(ctx context.Context, q querier, st UploadStatus, now time.Time) error {
	early := l.mayRetry(st.Send, now)
	if st.State != Settled || early == nil {
		return nil
	}
	byOther, err := exists(ctx, q, `SELECT EXISTS (SELECT 1 FROM upload_audit
		WHERE key = $1 AND generation = $2 AND what IN ('resolve as settled', 'verified'))`, st.Key, st.Generation)
	if err == nil && byOther {
		err = early
	}
	return err
}
