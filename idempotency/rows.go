package idempotency

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// Send is one send of a key: one generation, one attempt.
type Send struct {
	Key        string        `json:"-"`
	Generation int64         `json:"generation"`
	State      State         `json:"state"` // never Free
	AttemptID  string        `json:"attempt_id"`
	Seq        int64         `json:"-"`
	Source     string        `json:"-"`
	AudioID    int64         `json:"-"`
	SHA256     string        `json:"-"`
	SentAt     time.Time     `json:"sent_at"`
	Timeout    time.Duration `json:"-"`
	EndedAt    time.Time     `json:"-"` // zero while Sent
	Outcome    tasks.Outcome `json:"outcome"`
	Reason     string        `json:"reason"`
	RequestID  string        `json:"request_id"`
	Verify     Verify        `json:"verify"`
	Tries      int           `json:"verify_tries"` // verifications begun
	TriedAt    time.Time     `json:"-"`            // when the last verification began; zero = none
}

// MarshalJSON writes the zero Send as null, and ended_at as null while Sent.
func (s Send) MarshalJSON() ([]byte, error) {
	type fields Send // without this method
	if s.State == "" {
		return []byte("null"), nil
	}
	out := struct {
		fields
		EndedAt *time.Time `json:"ended_at"`
	}{fields: fields(s)}
	if !s.EndedAt.IsZero() {
		out.EndedAt = &s.EndedAt
	}
	return json.Marshal(out)
}

// sendColumns are the columns of scanSend. Without a match of a LEFT JOIN they make the zero Send.
const sendColumns = `COALESCE(u.key, ''), COALESCE(u.generation, 0), COALESCE(u.attempt_id, ''), COALESCE(u.seq, 0),
	COALESCE(u.source, ''), COALESCE(u.audio_id, 0), COALESCE(u.sha256, ''), COALESCE(u.state, ''), u.sent_at,
	COALESCE(u.timeout_ms, 0), u.ended_at, COALESCE(u.outcome, ''), COALESCE(u.reason, ''), COALESCE(u.request_id, ''),
	COALESCE(u.verify, ''), COALESCE(u.verify_tries, 0), u.verify_at`

// scanSend scans the columns before, if any, and sendColumns.
func scanSend(row scanner, before ...any) (Send, error) {
	var s Send
	var timeout int64
	err := row.Scan(append(before, &s.Key, &s.Generation, &s.AttemptID, &s.Seq, &s.Source, &s.AudioID, &s.SHA256, &s.State,
		millis{&s.SentAt}, &timeout, millis{&s.EndedAt}, &s.Outcome, &s.Reason, &s.RequestID, &s.Verify, &s.Tries, millis{&s.TriedAt})...)
	s.Timeout = time.Duration(timeout) * time.Millisecond
	return s, err
}

// SendByAttempt returns the send that an attempt latched. It returns false if the attempt never latched. Such an attempt
// sent nothing.
func (l *Ledger) SendByAttempt(ctx context.Context, attemptID string) (Send, bool, error) {
	return sendOf(ctx, l.db, attemptID)
}

func sendOf(ctx context.Context, q querier, attemptID string) (Send, bool, error) {
	s, err := scanSend(q.QueryRowContext(ctx, `SELECT `+sendColumns+` FROM upload u WHERE u.attempt_id = $1`, attemptID))
	ok, err := found("read a send", err)
	return s, ok, err
}

// Slot is a place in a source's catalog and the key that owns it.
type Slot struct {
	Source  string
	AudioID int64
	Key     string
	SHA256  string
	Since   time.Time
}

// slotOf returns the owner of a slot. It returns false if the slot has no owner.
func slotOf(ctx context.Context, q querier, source string, audioID int64) (Slot, bool, error) {
	s := Slot{Source: source, AudioID: audioID}
	err := q.QueryRowContext(ctx, `SELECT key, sha256, since FROM upload_slot WHERE source = $1 AND audio_id = $2`, source, audioID).
		Scan(&s.Key, &s.SHA256, millis{&s.Since})
	ok, err := found("read a slot", err)
	return s, ok, err
}

func putSlot(ctx context.Context, tx *txn, s Slot) error {
	return tx.exec(ctx, "write a slot", `INSERT INTO upload_slot (source, audio_id, key, sha256, since) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (source, audio_id) DO UPDATE SET key = excluded.key, sha256 = excluded.sha256, since = excluded.since`,
		s.Source, s.AudioID, s.Key, s.SHA256, s.Since.UnixMilli())
}

// Entry is a key in its current generation.
type Entry struct {
	Key        string    `json:"key"`
	Source     string    `json:"source"`
	AudioID    int64     `json:"audio_id"`
	SHA256     string    `json:"sha256"` // "" = a URL
	Generation int64     `json:"generation"`
	State      State     `json:"state"`
	Since      time.Time `json:"since"` // when the key was first claimed or sent
	Owner      Slot      `json:"-"`     // the slot's owner, which may be another key; zero if there is none
	Send       Send      `json:"send"`  // zero while Free
}

const entryQuery = `SELECT k.key, k.source, k.audio_id, k.sha256, k.generation, k.since,
	COALESCE(s.key, ''), COALESCE(s.sha256, ''), s.since, ` + sendColumns + ` FROM upload_key k
	LEFT JOIN upload u ON u.key = k.key AND u.generation = k.generation
	LEFT JOIN upload_slot s ON s.source = k.source AND s.audio_id = k.audio_id`

func scanEntry(row scanner) (e Entry, err error) {
	e.Send, err = scanSend(row, &e.Key, &e.Source, &e.AudioID, &e.SHA256, &e.Generation, millis{&e.Since},
		&e.Owner.Key, &e.Owner.SHA256, millis{&e.Owner.Since})
	if e.Owner.Key != "" {
		e.Owner.Source, e.Owner.AudioID = e.Source, e.AudioID
	}
	e.State = cmp.Or(e.Send.State, Free)
	return e, err
}

// entryOf reads a key in one statement, so that the result is consistent outside a transaction too. It returns false for
// an unknown key, which is Free in generation 0.
func entryOf(ctx context.Context, q querier, key string) (Entry, bool, error) {
	e, err := scanEntry(q.QueryRowContext(ctx, entryQuery+` WHERE k.key = $1`, key))
	ok, err := found("read an upload", err)
	if !ok {
		e = Entry{Key: key, State: Free}
	}
	return e, ok, err
}

// same returns an error if the key was used for another source, audio_id or content before.
func (e Entry) same(source string, audioID int64, sha string) error {
	if e.Source != source || e.AudioID != audioID || e.SHA256 != sha {
		return fmt.Errorf("key %s belongs to another source, audio_id or content: %w", e.Key, ErrInvalid)
	}
	return nil
}

// insertKey writes a new key in generation 0, which belongs to the slot s.
func insertKey(ctx context.Context, tx *txn, s Slot) error {
	return tx.exec(ctx, "write a key", `INSERT INTO upload_key (key, source, audio_id, sha256, generation, since)
		VALUES ($1, $2, $3, $4, 0, $5)`, s.Key, s.Source, s.AudioID, s.SHA256, s.Since.UnixMilli())
}

// raiseGeneration allows the key one more send.
func raiseGeneration(ctx context.Context, tx *txn, key string, from int64) error {
	return tx.exec(ctx, "raise the generation", `UPDATE upload_key SET generation = $1 WHERE key = $2 AND generation = $3`,
		from+1, key, from)
}

// change is a new state of a send.
type change struct {
	to        State
	outcome   tasks.Outcome
	reason    string
	requestID string
	at        time.Time
}

func putState(ctx context.Context, tx *txn, s Send, c change) error {
	return tx.exec(ctx, "write the state", `UPDATE upload SET state = $1, ended_at = $2, outcome = $3, reason = $4, request_id = $5
		WHERE key = $6 AND generation = $7`,
		string(c.to), c.at.UnixMilli(), string(c.outcome), c.reason, c.requestID, s.Key, s.Generation)
}

// sharedSlot reports whether other content may have reached the slot. AudD may not be able to tell two recordings apart.
func sharedSlot(ctx context.Context, q querier, s Slot) (bool, error) {
	return exists(ctx, q, `SELECT EXISTS (SELECT 1 FROM upload
		WHERE source = $1 AND audio_id = $2 AND key <> $3 AND state IN ('sent', 'settled', 'uncertain'))`, s.Source, s.AudioID, s.Key)
}

// txn is a transaction that has locked the ledger.
type txn struct {
	*sql.Tx
	head Mark // the ledger's latest mark
}

// errUnchanged ends a transaction that has nothing to change. write rolls it back and returns no error.
var errUnchanged = errors.New("nothing to change")

// unchanged returns err, or errUnchanged if err is nil.
func unchanged(err error) error {
	if err != nil {
		return err
	}
	return errUnchanged
}

// write runs one change of the ledger in a transaction and returns the result of run. The transaction first updates the
// ledger's row, so that SQLite's write lock or PostgreSQL's row lock serializes all changes. run can therefore safely read
// before it writes.
func write[T any](ctx context.Context, l *Ledger, doing string, run func(tx *txn) (T, error)) (result T, err error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return result, fmt.Errorf("%s: begin: %w", doing, err)
	}
	t := &txn{Tx: tx}
	row := tx.QueryRowContext(ctx, `UPDATE upload_ledger SET seq = seq WHERE id = 1 RETURNING ledger, seq, token`)
	err = failed("lock the ledger", row.Scan(&t.head.Ledger, &t.head.Seq, &t.head.Token))
	var got T
	if err == nil {
		got, err = run(t)
	}
	if err == nil {
		err = failed("commit", tx.Commit())
	} else {
		err = rollBack(tx, err)
	}
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil { // database/sql rolled back, but its error does not name ctx
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if err != nil {
		return result, failed(doing, err)
	}
	return got, nil
}

// rollBack rolls back and returns cause, or nil for errUnchanged. sql.ErrTxDone of the rollback is no error, because the
// transaction is over without a commit.
func rollBack(tx *sql.Tx, cause error) error {
	err := tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) {
		err = nil
	}
	if errors.Is(cause, errUnchanged) {
		return err
	}
	return errors.Join(cause, err)
}

// exec runs a statement; doing describes it in the error.
func (t *txn) exec(ctx context.Context, doing, query string, args ...any) error {
	_, err := t.ExecContext(ctx, query, args...)
	return failed(doing, err)
}

// raise stores the sequence number and the token as the ledger's latest mark.
func (t *txn) raise(ctx context.Context, seq int64, token string) error {
	t.head.Seq, t.head.Token = seq, token
	return t.exec(ctx, "raise the sequence", `UPDATE upload_ledger SET seq = $1, token = $2 WHERE id = 1`, seq, token)
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// all returns the scanned rows of a query.
func all[T any](ctx context.Context, q querier, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// exists returns the result of a SELECT EXISTS query.
func exists(ctx context.Context, q querier, query string, args ...any) (is bool, err error) {
	err = q.QueryRowContext(ctx, query, args...).Scan(&is)
	return is, failed("look into the upload ledger", err)
}

// found reports whether the scan of a single row found one. err is the error of the scan.
func found(doing string, err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, failed(doing, err)
}

// failed adds what was being done to an error; nil stays nil.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// millis scans milliseconds since the Unix epoch into a time. NULL is the zero time.
type millis struct{ *time.Time }

// Scan implements sql.Scanner.
func (m millis) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*m.Time = time.Time{}
	case int64:
		*m.Time = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("read a time: unexpected %T", value)
	}
	return nil
}
