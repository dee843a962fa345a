package idempotency

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// Send is one send of a key: one generation, one attempt.
type Send struct {
	Key        string
	Generation int64
	AttemptID  string
	Seq        int64
	Source     string
	AudioID    int64
	SHA256     string
	State      State // never Free
	SentAt     time.Time
	Timeout    time.Duration
	EndedAt    time.Time // zero while Sent
	Outcome    tasks.Outcome
	Reason     string
	RequestID  string
	Verify     Verify
	Tries      int       // verifications begun
	TriedAt    time.Time // the last one, zero for none
}

const sendColumns = `u.key, u.generation, u.attempt_id, u.seq, u.source, u.audio_id, u.sha256, u.state, u.sent_at,
	u.timeout_ms, u.ended_at, u.outcome, u.reason, u.request_id, u.verify, u.verify_tries, u.verify_at`

// maybeColumns are the same columns for a LEFT JOIN without a match.
const maybeColumns = `COALESCE(u.key, ''), COALESCE(u.generation, 0), COALESCE(u.attempt_id, ''), COALESCE(u.seq, 0),
	COALESCE(u.source, ''), COALESCE(u.audio_id, 0), COALESCE(u.sha256, ''), COALESCE(u.state, ''), COALESCE(u.sent_at, 0),
	COALESCE(u.timeout_ms, 0), u.ended_at, COALESCE(u.outcome, ''), COALESCE(u.reason, ''), COALESCE(u.request_id, ''),
	COALESCE(u.verify, ''), COALESCE(u.verify_tries, 0), u.verify_at`

type scanner interface{ Scan(dest ...any) error }

// scanSend reads a row of the columns before, if any, and those of a send.
func scanSend(row scanner, before ...any) (Send, error) {
	var s Send
	var sentAt, timeout int64
	var endedAt, triedAt sql.NullInt64
	err := row.Scan(append(before, &s.Key, &s.Generation, &s.AttemptID, &s.Seq, &s.Source, &s.AudioID, &s.SHA256, &s.State,
		&sentAt, &timeout, &endedAt, &s.Outcome, &s.Reason, &s.RequestID, &s.Verify, &s.Tries, &triedAt)...)
	if err != nil || s.AttemptID == "" {
		return Send{}, err
	}
	s.SentAt, s.Timeout = instant(sentAt), time.Duration(timeout)*time.Millisecond
	s.EndedAt, s.TriedAt = nullable(endedAt), nullable(triedAt)
	return s, nil
}

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func nullable(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return instant(ms.Int64)
}

// sendOf is the send an attempt latched.
func sendOf(ctx context.Context, q querier, attemptID string) (Send, bool, error) {
	return oneSend(q.QueryRowContext(ctx, `SELECT `+sendColumns+` FROM upload u WHERE u.attempt_id = $1`, attemptID))
}

// currentSend is the send of the key's current generation, in one statement,
// so that it is consistent outside a transaction too.
func currentSend(ctx context.Context, q querier, key string) (Send, bool, error) {
	return oneSend(q.QueryRowContext(ctx, `SELECT `+sendColumns+` FROM upload_key k
		JOIN upload u ON u.key = k.key AND u.generation = k.generation WHERE k.key = $1`, key))
}

func oneSend(row *sql.Row) (Send, bool, error) {
	s, err := scanSend(row)
	if errors.Is(err, sql.ErrNoRows) {
		return Send{}, false, nil
	}
	if err != nil {
		return Send{}, false, fmt.Errorf("read a send: %w", err)
	}
	return s, true, nil
}

// keyRow is a row of upload_key.
type keyRow struct {
	key        string
	source     string
	audioID    int64
	sha        string
	generation int64
	since      time.Time
}

// same rejects a key that is used for other work than before.
func (k keyRow) same(source string, audioID int64, sha string) error {
	if k.source != source || k.audioID != audioID || k.sha != sha {
		return fmt.Errorf("key %s belongs to another source, audio_id or content: %w", k.key, ErrInvalid)
	}
	return nil
}

func keyOf(ctx context.Context, q querier, key string) (keyRow, bool, error) {
	k := keyRow{key: key}
	var since int64
	err := q.QueryRowContext(ctx, `SELECT source, audio_id, sha256, generation, since FROM upload_key WHERE key = $1`, key).
		Scan(&k.source, &k.audioID, &k.sha, &k.generation, &since)
	if errors.Is(err, sql.ErrNoRows) {
		return keyRow{}, false, nil
	}
	if err != nil {
		return keyRow{}, false, fmt.Errorf("read a key: %w", err)
	}
	k.since = instant(since)
	return k, true, nil
}

func insertKey(ctx context.Context, tx *txn, k keyRow) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO upload_key (key, source, audio_id, sha256, generation, since)
		VALUES ($1, $2, $3, $4, 0, $5)`, k.key, k.source, k.audioID, k.sha, k.since.UnixMilli())
	if err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	return nil
}

// raiseGeneration lets the key send again. Its row is locked with the ledger.
func raiseGeneration(ctx context.Context, tx *txn, key string, from int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE upload_key SET generation = $1 WHERE key = $2 AND generation = $3`, from+1, key, from)
	if err != nil {
		return fmt.Errorf("raise the generation: %w", err)
	}
	return nil
}

// change is a new state of a send with its reason.
type change struct {
	to        State
	outcome   tasks.Outcome
	reason    string
	requestID string
	at        time.Time
}

func putState(ctx context.Context, tx *txn, s Send, c change) error {
	_, err := tx.ExecContext(ctx, `UPDATE upload SET state = $1, ended_at = $2, outcome = $3, reason = $4, request_id = $5
		WHERE key = $6 AND generation = $7`,
		string(c.to), c.at.UnixMilli(), string(c.outcome), c.reason, c.requestID, s.Key, s.Generation)
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}

// Slot is a place in a source's catalog and the key that owns it.
type Slot struct {
	Source  string
	AudioID int64
	Key     string
	SHA256  string
	Since   time.Time
}

func slotOf(ctx context.Context, q querier, source string, audioID int64) (Slot, bool, error) {
	s := Slot{Source: source, AudioID: audioID}
	var since int64
	err := q.QueryRowContext(ctx, `SELECT key, sha256, since FROM upload_slot WHERE source = $1 AND audio_id = $2`, source, audioID).
		Scan(&s.Key, &s.SHA256, &since)
	if errors.Is(err, sql.ErrNoRows) {
		return Slot{}, false, nil
	}
	if err != nil {
		return Slot{}, false, fmt.Errorf("read a slot: %w", err)
	}
	s.Since = instant(since)
	return s, true, nil
}

func putSlot(ctx context.Context, tx *txn, s Slot) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO upload_slot (source, audio_id, key, sha256, since) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (source, audio_id) DO UPDATE SET key = excluded.key, sha256 = excluded.sha256, since = excluded.since`,
		s.Source, s.AudioID, s.Key, s.SHA256, s.Since.UnixMilli())
	if err != nil {
		return fmt.Errorf("write a slot: %w", err)
	}
	return nil
}
