package idempotency

import (
	"context"
	"time"
)

// UploadStatus is the status of a key.
type UploadStatus struct {
	Entry
	Known     bool      // false: the key was neither claimed nor sent
	Until     time.Time // while Sent: when Expire makes it uncertain
	Busy      string    // while Free: another key in flight to the slot, "" if none
	BusyUntil time.Time // when the send of Busy ends at the latest
}

// Status returns the status of a key before admission. It does not reserve anything: Latch decides. An unknown key is Free
// in generation 0.
func (l *Ledger) Status(ctx context.Context, key string) (UploadStatus, error) {
	st, err := l.status(ctx, l.db, key)
	return st, failed("read the status of an upload", err)
}

// status runs up to two statements. Outside a transaction, Busy may be outdated when it returns.
func (l *Ledger) status(ctx context.Context, q querier, key string) (st UploadStatus, err error) {
	st.Entry, st.Known, err = entryOf(ctx, q, key)
	if st.State == Sent {
		st.Until = st.Send.SentAt.Add(st.Send.Timeout + l.cfg.Margin)
	}
	if st.State == Free && st.Known {
		err = l.setBusy(ctx, q, &st)
	}
	return st, err
}

// known is status with ErrUnknownKey for an unknown key.
func (l *Ledger) known(ctx context.Context, q querier, key string) (UploadStatus, error) {
	st, err := l.status(ctx, q, key)
	if err == nil && !st.Known {
		err = failed("key "+key, ErrUnknownKey)
	}
	return st, err
}

// setBusy sets Busy and BusyUntil from the other key whose send keeps the slot busy until the latest time.
func (l *Ledger) setBusy(ctx context.Context, q querier, st *UploadStatus) error {
	err := q.QueryRowContext(ctx, `SELECT key, sent_at + timeout_ms FROM upload
		WHERE source = $1 AND audio_id = $2 AND key <> $3 AND state = $4
		ORDER BY sent_at + timeout_ms DESC LIMIT 1`, st.Source, st.AudioID, st.Key, string(Sent)).Scan(&st.Busy, millis{&st.BusyUntil})
	ok, err := found("look for sends to the slot", err)
	if ok {
		st.BusyUntil = st.BusyUntil.Add(l.cfg.Margin)
	}
	return err
}

// MaySend returns nil if Latch would succeed at now, else the error that Latch would return.
func (s UploadStatus) MaySend(now time.Time) error {
	switch {
	case s.State != Free:
		return &TakenError{Send: s.Send, Until: s.Until}
	case s.Owner.Key != "" && s.Owner.Key != s.Key:
		return &SlotTakenError{Slot: s.Owner}
	case now.Before(s.BusyUntil):
		return &SlotBusyError{Source: s.Source, AudioID: s.AudioID, Key: s.Busy, Until: s.BusyUntil}
	}
	return nil
}
