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

// TaskStatus is the status of a task, without its payload. The zero value means that the key is unknown.
type TaskStatus struct {
	Known bool       `json:"-"`
	Key   string     `json:"key"` // "" for an unknown key
	Path  tasks.Path `json:"path"`
	Queue string     `json:"queue"`
	// Generation counts how often the task was reopened, from 0.
	Generation int64 `json:"generation"`
	// Finished means that this generation has its final verdict (done, archive, hold).
	Finished bool `json:"-"`
	// Verdict, Outcome and Reason are those of the final verdict. Before it, they are those of the latest attempt,
	// and "" before the first attempt.
	Verdict tasks.Verdict `json:"verdict"`
	Outcome tasks.Outcome `json:"outcome"`
	Reason  string        `json:"reason"`
	// Final marks a tombstone: only force reopens the task.
	Final bool `json:"final"`
	// Result is nil when the generation has none yet, and in lists of tasks.
	Result json.RawMessage `json:"-"`
	// CreatedAt is when the key was first recorded. AttemptedAt is when this generation was last attempted, and
	// FinishedAt when it finished; each is zero before that.
	CreatedAt   time.Time `json:"created_at"`
	AttemptedAt time.Time `json:"-"`
	UpdatedAt   time.Time `json:"updated_at"`
	FinishedAt  time.Time `json:"-"`
}

const taskColumns = `t.key, t.path, t.queue, t.generation, t.finished, t.verdict, t.outcome, t.reason, t.final,
       t.created_at, t.attempted_at, t.updated_at, t.finished_at`

// scanTask reads taskColumns, then more columns: result is the destination of r.body.
func scanTask(row scanner, t *TaskStatus, more ...any) error {
	t.Known = true
	columns := []any{
		&t.Key, &t.Path, &t.Queue, &t.Generation, &t.Finished, &t.Verdict, &t.Outcome, &t.Reason, &t.Final,
		instant{&t.CreatedAt}, instant{&t.AttemptedAt}, instant{&t.UpdatedAt}, instant{&t.FinishedAt},
	}
	return row.Scan(append(columns, more...)...)
}

var selectStatus = &statement{"read the status of a task", `
SELECT ` + taskColumns + `, r.body
FROM task t LEFT JOIN result r ON r.key = t.key AND r.generation = t.generation
WHERE t.key = ?`}

// TaskStatus returns the status of a key. An unknown key is not an error.
func (s *Store) TaskStatus(ctx context.Context, key string) (TaskStatus, error) {
	st, err := scanStatus(s.stmts[selectStatus].QueryRowContext(ctx, key))
	return st, s.failed(selectStatus.doing, err)
}

// scanStatus reads the row of selectStatus. No row means an unknown key.
func scanStatus(row scanner) (st TaskStatus, err error) {
	err = scanTask(row, &st, (*[]byte)(&st.Result))
	if errors.Is(err, sql.ErrNoRows) {
		return TaskStatus{}, nil
	}
	return st, err
}

var selectPayload = &statement{"read the payload of a task", `SELECT payload FROM task WHERE key = ?`}

// Payload returns the payload of a task, which is needed to enqueue it again; nil for a task without one. It may hold a
// signed URL: keep it out of logs and errors. An unknown key wraps ErrUnknownKey.
func (s *Store) Payload(ctx context.Context, key string) ([]byte, error) {
	var payload []byte
	err := s.stmts[selectPayload].QueryRowContext(ctx, key).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("key %q: %w", key, ErrUnknownKey)
	}
	return payload, s.failed(selectPayload.doing, err)
}
