package idempotency

import (
	"errors"
	"fmt"
	"time"
)

// ErrInvalid means that an argument is invalid or contradicts the ledger. A retry does not help.
var ErrInvalid = errors.New("invalid ledger entry")

// ErrUnknownKey means that the ledger has no such key.
var ErrUnknownKey = errors.New("the upload ledger has no entry for this key")

// ErrUnknownAttempt means that an attempt reports a send without a latch in this ledger. It latched in another ledger.
var ErrUnknownAttempt = errors.New("the upload ledger has no latch for this attempt")

// TakenError means that the key's current generation was sent before. The caller makes no call.
type TakenError struct {
	Send  Send
	Until time.Time // while Sent: when Expire makes it uncertain
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("this upload has been %s since %s (generation %d)", e.Send.State, utc(e.Send.SentAt), e.Send.Generation)
}

// SlotTakenError means that other content owns the slot. Only a claim with Replace can take it.
type SlotTakenError struct{ Slot Slot }

func (e *SlotTakenError) Error() string {
	return fmt.Sprintf("audio_id %d of source %s belongs to other content (%s) since %s", e.Slot.AudioID, e.Slot.Source, e.Slot.Key, utc(e.Slot.Since))
}

// SlotBusyError means that other content is being sent to the slot. It is unknown which of two concurrent uploads AudD
// would keep.
type SlotBusyError struct {
	Source  string
	AudioID int64
	Key     string    // of the send in flight
	Until   time.Time // when that send ends at the latest
}

func (e *SlotBusyError) Error() string {
	return fmt.Sprintf("audio_id %d of source %s is reserved by an upload of other content (%s) until %s", e.AudioID, e.Source, e.Key, utc(e.Until))
}

// StaleError means that too much time has passed since the latch.
type StaleError struct{ Age, Limit time.Duration }

func (e *StaleError) Error() string {
	return fmt.Sprintf("latched %s ago; the limit is %s", e.Age, e.Limit)
}

// BehindError means that this ledger lacks the remembered mark: it is a restored backup or another ledger. Nothing is
// sent until an operator adopts it.
type BehindError struct{ Remembered, Highest Mark }

func (e *BehindError) Error() string {
	if e.Remembered.Ledger != e.Highest.Ledger {
		return fmt.Sprintf("the upload ledger is %s, but Redis expects %s: check the ledger, then adopt it",
			e.Highest.Ledger, e.Remembered.Ledger)
	}
	return fmt.Sprintf("the upload ledger is at entry %d and lacks entry %d, which Redis expects, so it was restored from a backup: check the ledger, then adopt it",
		e.Highest.Seq, e.Remembered.Seq)
}

// TooEarlyError means that an earlier send may still be in flight.
type TooEarlyError struct{ Until time.Time }

func (e *TooEarlyError) Error() string {
	return "the earlier send may still be in flight until " + utc(e.Until)
}

// NotResolvableError means that an upload in this state cannot be resolved this way.
type NotResolvableError struct {
	State State
	As    Resolution
}

func (e *NotResolvableError) Error() string {
	return fmt.Sprintf("an upload that is %s cannot be resolved as %s", e.State, e.As)
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }
