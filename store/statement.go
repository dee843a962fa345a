package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// statements are those of the hot path, prepared once.
type statements struct {
	status, probe                     *sql.Stmt
	ensureTask, touchTask, finishTask *sql.Stmt
	putCall, putResult                *sql.Stmt
	registerTask, registerSubmission  *sql.Stmt
}

func (s *Store) prepare(ctx context.Context) error {
	for _, p := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&s.stmts.status, statusQuery},
		{&s.stmts.probe, `INSERT INTO probe (id, at) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at`},
		{&s.stmts.ensureTask, ensureTaskQuery},
		{&s.stmts.touchTask, touchTaskQuery},
		{&s.stmts.finishTask, finishTaskQuery},
		{&s.stmts.putCall, putCallQuery},
		{&s.stmts.putResult, putResultQuery},
		{&s.stmts.registerTask, registerTaskQuery},
		{&s.stmts.registerSubmission, registerSubmissionQuery},
	} {
		stmt, err := s.db.PrepareContext(ctx, s.dialect.rebind(p.query))
		if err != nil {
			return errors.Join(fmt.Errorf("prepare a statement: %w", err), s.stmts.close())
		}
		*p.into = stmt
	}
	return nil
}

func (st statements) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{
		st.status, st.probe, st.ensureTask, st.touchTask, st.finishTask, st.putCall, st.putResult,
		st.registerTask, st.registerSubmission,
	} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}
