package idempotency

import (
	"context"
	"fmt"
	"time"

	"reprise/tasks"
)

// Conclusion is an attempt's report about its own send.
type Conclusion struct {
	Effect    tasks.LatchEffect
	Outcome   tasks.Outcome
	Reason    string // without secrets
	RequestID string // AudD's, "" if none
	At        time.Time
}

func (c Conclusion) validate() error {
	switch c.Effect {
	case tasks.LatchSettled, tasks.LatchReleased, tasks.LatchRejected, tasks.LatchUncertain:
	default:
		return fmt.Errorf("effect %q: %w", c.Effect, ErrInvalid)
	}
	if c.At.IsZero() {
		return fmt.Errorf("the time is required: %w", ErrInvalid)
	}
	return nil
}

// Conclude records how the attempt's send ended, and returns the new state of that send. Only the attempt that latched
// concludes. A repeated report changes nothing. doc.go lists the transitions. A report that came too late to count is
// written to the audit trail. A report about an older generation does not change the current one.
//
// An attempt without a latch may report tasks.LatchReleased, because a failed Latch is reported so; the returned state is
// then empty. Other effects without a latch wrap ErrUnknownAttempt. After any other error the caller reports again: until
// then the send counts as in flight.
func (l *Ledger) Conclude(ctx context.Context, attemptID string, c Conclusion) (State, error) {
	if err := c.validate(); err != nil {
		return "", failed("conclude an upload", err)
	}
	return write(ctx, l, "conclude an upload", func(tx *txn) (State, error) {
		s, latched, err := sendOf(ctx, tx, attemptID)
		switch {
		case err != nil:
			return "", err
		case latched:
			return conclude(ctx, tx, s, c)
		case c.Effect == tasks.LatchReleased:
			return "", errUnchanged
		}
		return "", fmt.Errorf("attempt %s reports %s: %w", attemptID, c.Effect, ErrUnknownAttempt)
	})
}

func conclude(ctx context.Context, tx *txn, s Send, c Conclusion) (State, error) {
	m, moves := moves[s.State][c.Effect]
	if !moves {
		return s.State, errUnchanged
	}
	if m.remark != "" {
		return s.State, tx.auditOnce(ctx, Action{By: "attempt " + s.AttemptID, Why: c.Reason, At: c.At}, m.remark, s)
	}
	err := putState(ctx, tx, s, change{to: m.to, outcome: c.Outcome, reason: c.Reason, requestID: c.RequestID, at: c.At})
	if err == nil && m.raises {
		err = raiseGeneration(ctx, tx, s.Key, s.Generation)
	}
	return m.to, err
}

// Expire makes a send without a conclusion uncertain once sent_at + timeout + Config.Margin has passed. Earlier, and in every
// other state, it changes nothing. It returns the status of the key.
func (l *Ledger) Expire(ctx context.Context, key string, now time.Time) (UploadStatus, error) {
	return write(ctx, l, "expire an upload", func(tx *txn) (UploadStatus, error) {
		st, err := l.status(ctx, tx, key)
		if err != nil || st.State != Sent || now.Before(st.Until) {
			return st, unchanged(err)
		}
		if err := expire(ctx, tx, st.Send, now); err != nil {
			return st, err
		}
		return l.status(ctx, tx, key)
	})
}

func expire(ctx context.Context, tx *txn, s Send, now time.Time) error {
	reason := fmt.Sprintf("%s: no response to attempt %s was recorded within %s", tasks.Crash, s.AttemptID, s.Timeout)
	return putState(ctx, tx, s, change{to: Uncertain, outcome: tasks.Crash, reason: reason, at: now})
}
