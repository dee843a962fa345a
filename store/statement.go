package store

import (
	"context"
	"database/sql"
	"fmt"
)

// statement is a fixed SQL statement. doing is the start of its error messages.
type statement struct{ doing, sql string }

// statements holds the prepared form of every fixed statement.
type statements map[*statement]*sql.Stmt

// exec runs a fixed statement in a transaction and returns the number of changed rows.
func (p statements) exec(ctx context.Context, tx *sql.Tx, st *statement, args ...any) (changed int64, err error) {
	result, err := tx.StmtContext(ctx, p[st]).ExecContext(ctx, args...)
	if err == nil {
		changed, err = result.RowsAffected()
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", st.doing, err)
	}
	return changed, nil
}
