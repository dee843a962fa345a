package idempotency

import (
	"context"
	"fmt"
	"time"
)

// UploadStatus is where a key stands now.
type UploadStatus struct {
	Known      bool // false: neither claimed nor sent so far
	Generation int64
	State      State // of this generation
	Send       Send  // zero while Free
	// Until is, while Sent, when a redelivery may call Expire.
	Until time.Time
	// Owner is the key that owns the slot, "" if nobody does.
	Owner Slot
	// Busy is the other key on its way into the slot, "" if none, BusyUntil
	// until when.
	Busy      string
	BusyUntil time.Time

	key string
}

// Status is the point read before admission. It promises nothing: only Latch
// does. A key that is not known stands Free in generation 0.
func (l *Ledger) Status(ctx context.Context, key string) (UploadStatus, error) {
	st, err := l.look(ctx, l.db, key)
	if err != nil {
		return UploadStatus{}, fmt.Errorf("look an upload up: %w", err)
	}
	return st, nil
}

// look asks several statements. Outside a transaction Free may be over by the
// time it returns; every other state is the one that stood.
func (l *Ledger) look(ctx context.Context, q querier, key string) (UploadStatus, error) {
	st := UploadStatus{State: Free, key: key}
	s, sent, err := currentSend(ctx, q, key)
	if err != nil {
		return st, err
	}
	if sent {
		st.Known, st.Generation, st.State, st.Send = true, s.Generation, s.State, s
		if s.State == Sent {
			st.Until = l.over(s)
		}
		return st, nil
	}
	k, found, err := keyOf(ctx, q, key)
	if err != nil || !found {
		return st, err
	}
	st.Known, st.Generation = true, k.generation
	if st.Owner, _, err = slotOf(ctx, q, k.source, k.audioID); err != nil {
		return st, err
	}
	st.Busy, st.BusyUntil, err = l.onItsWay(ctx, q, slotRef{k.source, k.audioID, key})
	return st, err
}

// MaySend is nil when an attempt at now would get the latch as things stood,
// else the error Latch would return.
func (s UploadStatus) MaySend(now time.Time) error {
	switch {
	case s.State != Free:
		return &TakenError{Generation: s.Generation, State: s.State, AttemptID: s.Send.AttemptID, Since: s.Send.SentAt, Until: s.Until}
	case s.Owner.Key != "" && s.Owner.Key != s.key:
		return &SlotTakenError{Source: s.Owner.Source, AudioID: s.Owner.AudioID, Owner: s.Owner.Key, Since: s.Owner.Since}
	case now.Before(s.BusyUntil):
		return &SlotBusyError{Source: s.Owner.Source, AudioID: s.Owner.AudioID, Key: s.Busy, Until: s.BusyUntil}
	}
	return nil
}

// SendByAttempt is the send an attempt latched; false when it never latched, and so
// never sent: a worker that died before its latch left nothing in doubt.
func (l *Ledger) SendByAttempt(ctx context.Context, attemptID string) (Send, bool, error) {
	return sendOf(ctx, l.db, attemptID)
}
