package idempotency

import (
	"errors"
	"fmt"
	"time"
)

// ErrInvalid means that an argument contradicts itself or the ledger: a
// programming error that must not be retried.
var ErrInvalid = errors.New("invalid ledger entry")

// ErrUnknownKey means that the ledger has no row of the key.
var ErrUnknownKey = errors.New("the upload ledger does not know this key")

// ErrUnknownAttempt means that an attempt reports a send without a latch in this
// ledger: it latched in another ledger.
var ErrUnknownAttempt = errors.New("the upload ledger has no latch of this attempt")

// TakenError means that the key's current generation was sent already. The
// caller makes no call.
type TakenError struct {
	Generation int64
	State      State     // never Free
	AttemptID  string    // who latched
	Since      time.Time // sent_at
	Until      time.Time // while Sent: from then on Expire makes it uncertain
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("this upload is %s since %s (generation %d)", e.State, e.Since.UTC().Format(time.RFC3339), e.Generation)
}

// SlotTakenError means that the slot belongs to other content. Only a claim
// with Replace can take it.
type SlotTakenError struct {
	Source  string
	AudioID int64
	Owner   string // key
	Since   time.Time
}

func (e *SlotTakenError) Error() string {
	return fmt.Sprintf("audio_id %d of source %s belongs to other content (%s) since %s", e.AudioID, e.Source, e.Owner, e.Since.UTC().Format(time.RFC3339))
}

// SlotBusyError means that other content is in flight to the slot. It is unknown
// which of two concurrent uploads AudD would keep.
type SlotBusyError struct {
	Source  string
	AudioID int64
	Key     string    // of the send in flight
	Until   time.Time // the latest end of that send
}

func (e *SlotBusyError) Error() string {
	return fmt.Sprintf("audio_id %d of source %s is reserved by an upload of other content (%s) until %s", e.AudioID, e.Source, e.Key, e.Until.UTC().Format(time.RFC3339))
}

// StaleError means that too much time passed since the latch was committed.
type StaleError struct{ Age, Limit time.Duration }

func (e *StaleError) Error() string {
	return fmt.Sprintf("%s passed since the latch, at most %s may", e.Age, e.Limit)
}

// BehindError means that this ledger lacks the remembered mark: it is a restored
// backup or another ledger. Nothing is sent until an operator adopts it.
type BehindError struct{ Remembered, Highest Mark }

func (e *BehindError) Error() string {
	if e.Remembered.Ledger != e.Highest.Ledger {
		return fmt.Sprintf("this is another upload ledger (%s) than the remembered one (%s): check it, then adopt it", e.Highest.Ledger, e.Remembered.Ledger)
	}
	return fmt.Sprintf("the upload ledger is at %d and lacks the remembered entry %d: it is a restored backup; check it, then adopt it", e.Highest.Seq, e.Remembered.Seq)
}

// TooEarlyError means that an earlier send may still be in flight.
type TooEarlyError struct{ Until time.Time }

func (e *TooEarlyError) Error() string {
	return "the earlier send may still be in flight until " + e.Until.UTC().Format(time.RFC3339)
}

// NotResolvableError means that the state of the key does not allow the resolution.
type NotResolvableError struct {
	State State
	As    Resolution
}

func (e *NotResolvableError) Error() string {
	return fmt.Sprintf("an upload that is %s cannot be resolved as %s", e.State, e.As)
}
