package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"reprise/tasks"
)

// TaskStatus is the status of a key. The zero value is an unknown key.
type TaskStatus struct {
	Known bool
	// Generation counts how often the key was re-opened, from 0.
	Generation int64
	// Finished means this generation has its verdict (done, archive, hold).
	Finished bool
	// Verdict, Outcome and Reason are the finishing ones or, while the task is
	// unfinished, those of its last attempt ("" before the first).
	Verdict tasks.Verdict
	Outcome tasks.Outcome
	Reason  string
	// Final marks a tombstone: only force opens it again.
	Final bool
	// Result is nil unless the generation finished with one.
	Result json.RawMessage
	Path   tasks.Path
	Queue  string
	// CreatedAt is when the key was first seen, FinishedAt zero until finished.
	CreatedAt, FinishedAt time.Time
}

const statusColumns = `t.generation, t.finished, t.verdict, t.outcome, t.reason, t.final, t.path, t.queue,
       t.created_at, t.finished_at, r.body`

const statusQuery = `
SELECT ` + statusColumns + `
FROM task t LEFT JOIN result r ON r.key = t.key AND r.generation = t.generation
WHERE t.key = ?`

// TaskStatus reads the status of a key. An unknown key is not an error.
func (s *Store) TaskStatus(ctx context.Context, key string) (TaskStatus, error) {
	st, err := scanStatus(s.stmts.status.QueryRowContext(ctx, key))
	if err != nil {
		return TaskStatus{}, s.failed("read the status of a task", err)
	}
	return st, nil
}

// Payload reads the payload of a task, to enqueue it again. It may hold a
// signed URL: keep it out of logs and errors. An unknown key wraps
// ErrUnknownKey; a task that never had a payload gives nil.
func (s *Store) Payload(ctx context.Context, key string) ([]byte, error) {
	var payload []byte
	err := s.db.QueryRowContext(ctx, s.dialect.rebind(`SELECT payload FROM task WHERE key = ?`), key).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read the payload of %q: %w", key, ErrUnknownKey)
	}
	return payload, s.failed("read a payload", err)
}

type scanner interface{ Scan(dest ...any) error }

// scanStatus reads statusColumns; no row is an unknown key.
func scanStatus(row scanner, more ...any) (TaskStatus, error) {
	st := TaskStatus{Known: true}
	var created, finished sql.NullInt64
	var body sql.NullString
	err := row.Scan(append([]any{
		&st.Generation, &st.Finished, &st.Verdict, &st.Outcome, &st.Reason, &st.Final,
		&st.Path, &st.Queue, &created, &finished, &body,
	}, more...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return TaskStatus{}, nil
	}
	if err != nil {
		return TaskStatus{}, err
	}
	st.CreatedAt, st.FinishedAt, st.Result = instant(created), instant(finished), raw(body)
	return st, nil
}
