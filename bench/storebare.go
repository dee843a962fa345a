package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"reprise/store"
)

// bareInserts write the rows of one finished task in the store's own schema.
var bareInserts = []string{
	`INSERT INTO task (key, path, queue, payload, finished, verdict, outcome, created_at, attempted_at, updated_at, finished_at)
	 VALUES (?1, 'recognize', 'recognize', '{"v":1}', TRUE, 'done', 'match', ?2, ?2, ?2, ?2)`,
	`INSERT INTO result (key, generation, attempt_id, verdict, outcome, body, finished_at)
	 VALUES (?1, 0, ?1 || '.1', 'done', 'match', ?3, ?2)`,
	`INSERT INTO call (attempt_id, key, generation, source, path, queue, outcome, verdict, http_status, phase,
	        latency_us, units, unit_basis, price, cost, at)
	 VALUES (?1 || '.1', ?1, 0, 'main', 'recognize', 'recognize', 'match', 'done', 200, 'answered',
	        800000, 1, 'estimated', 0.005, 0.005, ?2)`,
}

// bareRound is the upper limit: one writer, prepared inserts, full transactions.
func bareRound(ctx context.Context, s *store.Store, set storeSettings) (int, error) {
	var inserts []*sql.Stmt
	for _, query := range bareInserts {
		stmt, err := s.DB().PrepareContext(ctx, query)
		if err != nil {
			return 0, fmt.Errorf("prepare bare insert: %w", err)
		}
		defer stmt.Close()
		inserts = append(inserts, stmt)
	}
	start, done := time.Now(), 0
	for time.Since(start) < set.round {
		if err := bareTransaction(ctx, s.DB(), inserts, done, set.callers); err != nil {
			return done, err
		}
		done += set.callers
	}
	return done, nil
}

func bareTransaction(ctx context.Context, db *sql.DB, inserts []*sql.Stmt, from, count int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	inserts = slices.Clone(inserts)
	for i, stmt := range inserts {
		inserts[i] = tx.StmtContext(ctx, stmt) // ends with the transaction
	}
	for n := from; n < from+count; n++ {
		key, at := fmt.Sprintf("recognize_%d", n), time.Now().UnixMilli()
		for i, stmt := range inserts {
			args := []any{key, at, string(benchResult)}
			if i != 1 { // only the result row has a body
				args = args[:2]
			}
			if _, err := stmt.ExecContext(ctx, args...); err != nil {
				return fmt.Errorf("insert row %d of %s: %w", i, key, err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
