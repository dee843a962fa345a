package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// raiseTask starts a newer generation of a task. It raises an unfinished task only if the last argument is true.
var raiseTask = &statement{"start a new task generation", `
UPDATE task SET generation = ?, finished = FALSE, final = FALSE, finished_at = NULL,
       verdict = '', outcome = '', reason = '', attempted_at = NULL, updated_at = ?
WHERE key = ? AND generation < ? AND (finished OR ?)`}

var selectGeneration = &statement{"read the task generation", `SELECT generation FROM task WHERE key = ?`}

// Reopen starts the next generation of a finished task (force, fresh, replay) and returns the generation to enqueue.
// finished is the finished generation that the caller read. Results of earlier generations are kept. If the task is
// unfinished or was reopened since, Reopen changes nothing and returns the current generation, so it can be repeated
// after a crash. For an unknown key the error wraps ErrUnknownKey.
func (s *Store) Reopen(ctx context.Context, key string, finished int64) (generation int64, err error) {
	defer s.marked.Store(false)
	next, at := finished+1, time.Now().UnixMilli()
	err = s.write(ctx, "reopen a task", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := s.stmts.exec(ctx, tx, raiseTask, next, at, key, next, false); err != nil {
			return err
		}
		err := tx.StmtContext(ctx, s.stmts[selectGeneration]).QueryRowContext(ctx, key).Scan(&generation)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("key %q: %w", key, ErrUnknownKey)
		case err != nil:
			return fmt.Errorf("%s: %w", selectGeneration.doing, err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return generation, nil
}
