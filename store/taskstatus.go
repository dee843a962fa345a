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

// TaskStatus is a task's status, without its payload. The zero value means that the key is unknown.
type TaskStatus struct {
	Known bool       `json:"-"`
	Key   string     `json:"key"` // "" for an unknown key
	Path  tasks.Path `json:"path"`
	Queue string     `json:"queue"`
	// Generation counts how often the task was reopened, from 0.
	Generation int64 `json:"generation"`
	// Finished means that this generation has a final verdict (done, archive, hold).
	Finished bool `json:"-"`
	// Verdict, Outcome and Reason come from the final verdict. Before the final verdict they come from the latest
	// attempt. Before the first attempt they are "".
	Verdict tasks.Verdict `json:"verdict"`
	Outcome tasks.Outcome `json:"outcome"`
	Reason  string        `json:"reason"`
	// Final marks a tombstone: only force reopens the task.
	Final bool `json:"final"`
	// Result is nil in lists of tasks, and if the generation has no result yet.
	Result json.RawMessage `json:"-"`
	// CreatedAt is when the key was first recorded. AttemptedAt is when this generation was last attempted. FinishedAt
	// is when it finished. Each is zero until then.
	CreatedAt   time.Time `json:"created_at"`
	AttemptedAt time.Time `json:"-"`
	UpdatedAt   time.Time `json:"updated_at"`
	FinishedAt  time.Time `json:"-"`
}

const taskColumns = `t.key, t.path, t.queue, t.generation, t.finished, t.verdict, t.outcome, t.reason, t.final,
       t.created_at, t.attempted_at, t.updated_at, t.finished_at`

// scanTask reads taskColumns into t and the columns after them into more.
func scanTask(row scanner, t *TaskStatus, more ...any) error {
	t.Known = true
	columns := []any{
		&t.Key, &t.Path, &t.Queue, &t.Generation, &t.Finished, &t.Verdict, &t.Outcome, &t.Reason, &t.Final,
		instant{&t.CreatedAt}, instant{&t.AttemptedAt}, instant{&t.UpdatedAt}, instant{&t.FinishedAt},
	}
	return row.Scan(append(columns, more...)...)
}

var selectStatus = &statement{"read the task status", `
SELECT ` + taskColumns + `, r.body
FROM task t LEFT JOIN result r ON r.key = t.key AND r.generation = t.generation
WHERE t.key = ?`}

// TaskStatus returns a key's status. An unknown key is not an error.
func (s *Store) TaskStatus(ctx context.Context, key string) (TaskStatus, error) {
	st, err := scanStatus(s.stmts[selectStatus].QueryRowContext(ctx, key))
	return st, s.failed(selectStatus.doing, err)
}

// scanStatus reads the row of selectStatus. If there is no row, the key is unknown.
func scanStatus(row scanner) (st TaskStatus, err error) {
	err = scanTask(row, &st, (*[]byte)(&st.Result))
	if errors.Is(err, sql.ErrNoRows) {
		return TaskStatus{}, nil
	}
	return st, err
}

var selectPayload = &statement{"read the task payload", `SELECT payload FROM task WHERE key = ?`}

// Payload returns the task's payload, which is needed to enqueue the task again. It returns nil if the task has none.
// The payload may contain a signed URL, so keep it out of logs and errors. For an unknown key the error wraps
// ErrUnknownKey.
func (s *Store) Payload(ctx context.Context, key string) ([]byte, error) {
	var payload []byte
	err := s.stmts[selectPayload].QueryRowContext(ctx, key).Scan(&payload)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("key %q: %w", key, ErrUnknownKey)
	}
	return payload, s.failed(selectPayload.doing, err)
}
