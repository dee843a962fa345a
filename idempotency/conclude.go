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

// Concluded is the state of the send after a report.
type Concluded struct {
	// Known is false if the attempt never latched.
	Known bool
	State State // of this attempt's send
	// Current is false if the key has a later generation, which the report does not
	// change.
	Current bool
	// Generation is the key's current generation.
	Generation int64
	// Late means that the report came too late to count; it is in the audit trail.
	Late bool
}

// Conclude records the outcome of the attempt's send. Only the attempt that
// latched concludes; a repeated report changes nothing. The transitions are in
// doc.go: a late answer of AudD replaces uncertain, a late
// tasks.LatchReleased does not. A report of an older generation is recorded and does not
// change the current one.
//
// tasks.LatchReleased of an attempt without a latch is no error: that is how a failed
// Latch is reported. Any other effect then wraps ErrUnknownAttempt. On another
// error report again: until then the send counts as in flight.
func (l *Ledger) Conclude(ctx context.Context, attemptID string, c Conclusion) (Concluded, error) {
	if err := c.validate(); err != nil {
		return Concluded{}, fmt.Errorf("conclude an upload: %w", err)
	}
	var done Concluded
	err := l.write(ctx, "conclude an upload", func(ctx context.Context, tx *txn) error {
		s, found, err := sendOf(ctx, tx, attemptID)
		if err != nil {
			return err
		}
		if !found {
			if c.Effect != tasks.LatchReleased {
				return fmt.Errorf("attempt %s reports %s: %w", attemptID, c.Effect, ErrUnknownAttempt)
			}
			return errUnchanged
		}
		done, err = conclude(ctx, tx, s, c)
		return err
	})
	if err != nil {
		return Concluded{}, err
	}
	return done, nil
}

func conclude(ctx context.Context, tx *txn, s Send, c Conclusion) (Concluded, error) {
	k, found, err := keyOf(ctx, tx, s.Key)
	if err != nil {
		return Concluded{}, err
	}
	if !found {
		return Concluded{}, fmt.Errorf("key %s: %w", s.Key, ErrUnknownKey)
	}
	done := Concluded{Known: true, State: s.State, Generation: k.generation, Current: k.generation == s.Generation}
	m, moves := moves[s.State][c.Effect]
	if !moves {
		return done, errUnchanged
	}
	if m.remark != "" {
		done.Late = true
		act := Action{By: "attempt " + s.AttemptID, Why: c.Reason, At: c.At}
		return done, tx.auditOnce(ctx, act, m.remark, s)
	}
	if err := putState(ctx, tx, s, change{to: m.to, outcome: c.Outcome, reason: c.Reason, requestID: c.RequestID, at: c.At}); err != nil {
		return done, err
	}
	done.State = m.to
	if m.raises && done.Current {
		done.Generation, done.Current = k.generation+1, false
		return done, raiseGeneration(ctx, tx, s.Key, s.Generation)
	}
	return done, nil
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
