package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const reopenQuery = `
UPDATE task SET generation = ?, finished = FALSE, final = FALSE, finished_at = NULL,
       verdict = '', outcome = '', reason = '', attempted_at = NULL, updated_at = ?
WHERE key = ? AND generation <= ? AND finished`

// Reopen opens a finished task again (force, fresh, replay) and returns the
// generation to enqueue it with. from is the finished generation
// that the caller read. It may be repeated after a crash: if the task was reopened
// since or is not finished, nothing changes and it returns the current generation. An unknown key wraps ErrUnknownKey. Results of earlier generations
// are kept.
func (s *Store) Reopen(ctx context.Context, key string, from int64) (generation int64, err error) {
	at := time.Now().UnixMilli()
	err = s.write(ctx, "reopen a task", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, s.dialect.rebind(reopenQuery), from+1, at, key, from); err != nil {
			return fmt.Errorf("raise the generation: %w", err)
		}
		row := tx.QueryRowContext(ctx, s.dialect.rebind(`SELECT generation FROM task WHERE key = ?`), key)
		err := row.Scan(&generation)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("key %q: %w", key, ErrUnknownKey)
		}
		if err != nil {
			return fmt.Errorf("read the generation: %w", err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return generation, nil
}
