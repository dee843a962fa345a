package idempotency

import (
	"context"
	"fmt"
	"time"
)

// UploadStatus is the status of a key.
type UploadStatus struct {
	Known      bool // false: neither claimed nor sent so far
	Generation int64
	State      State // of this generation
	Send       Send  // zero while Free
	// Until is, while Sent, when a redelivery may call Expire.
	Until time.Time
	// Owner is the owner of the slot, zero if there is none.
	Owner Slot
	// Busy is another key in flight to the slot until BusyUntil, "" if none.
	Busy      string
	BusyUntil time.Time

	key string
}

// Status reads the status of a key before admission. Only Latch is binding. An
// unknown key is Free in generation 0.
func (l *Ledger) Status(ctx context.Context, key string) (UploadStatus, error) {
	st, err := l.look(ctx, l.db, key)
	if err != nil {
		return UploadStatus{}, fmt.Errorf("read the status of an upload: %w", err)
	}
	return st, nil
}

// look runs several statements. Outside a transaction Free may be outdated when it
// returns; every other state is consistent.
func (l *Ledger) look(ctx context.Context, q querier, key string) (UploadStatus, error) {
	st := UploadStatus{State: Free, key: key}
	s, sent, err := currentSend(ctx, q, key)
	if err != nil {
		return st, err
	}
	if sent {
		st.Known, st.Generation, st.State, st.Send = true, s.Generation, s.State, s
		if s.State == Sent {
			st.Until = l.deadline(s)
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
	st.Busy, st.BusyUntil, err = l.inFlight(ctx, q, slotRef{k.source, k.audioID, key})
	return st, err
}

// MaySend returns nil if Latch would succeed at now for this status, else the
// error that Latch would return.
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

// SendByAttempt is the send an attempt latched; false if it never latched and
// therefore never sent.
func (l *Ledger) SendByAttempt(ctx context.Context, attemptID string) (Send, bool, error) {
	return sendOf(ctx, l.db, attemptID)
}
