package idempotency

import (
	"context"
	"fmt"
	"time"

	"reprise/tasks"
)

// Expire makes a send without a conclusion uncertain once sent_at + timeout +
// margin has passed. Earlier, and in every other state, nothing changes. It
// returns the status of the key.
func (l *Ledger) Expire(ctx context.Context, key string, now time.Time) (UploadStatus, error) {
	var st UploadStatus
	err := l.write(ctx, "expire an upload", func(ctx context.Context, tx *txn) error {
		var err error
		if st, err = l.look(ctx, tx, key); err != nil {
			return err
		}
		if st.State != Sent || now.Before(st.Until) {
			return errUnchanged
		}
		if err := expire(ctx, tx, st.Send, now); err != nil {
			return err
		}
		st, err = l.look(ctx, tx, key)
		return err
	})
	if err != nil {
		return UploadStatus{}, err
	}
	return st, nil
}

func expire(ctx context.Context, tx *txn, s Send, now time.Time) error {
	reason := fmt.Sprintf("%s: no answer of its attempt %s was recorded within %s", tasks.Crash, s.AttemptID, s.Timeout)
	return putState(ctx, tx, s, change{to: Uncertain, outcome: tasks.Crash, reason: reason, at: now})
}
