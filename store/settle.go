package store

import (
	"context"
	"database/sql"
	"fmt"
)

const ensureTaskQuery = `
INSERT INTO task (key, path, queue, payload, generation, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO NOTHING`

// touchTaskQuery shows the latest decision on an unfinished task. A settlement
// of a newer generation than the row's (the database was restored from a
// backup) raises the row.
const touchTaskQuery = `
UPDATE task SET generation = ?, finished = FALSE, final = FALSE, finished_at = NULL,
       verdict = ?, outcome = ?, reason = ?, attempted_at = ?, updated_at = ?
WHERE key = ? AND (generation < ? OR
      (generation = ? AND NOT finished AND (attempted_at IS NULL OR attempted_at < ?)))`

// raiseTaskQuery opens a newer generation without a decision in it.
const raiseTaskQuery = `
UPDATE task SET generation = ?, finished = FALSE, final = FALSE, finished_at = NULL,
       verdict = '', outcome = '', reason = '', attempted_at = NULL, updated_at = ?
WHERE key = ? AND generation < ?`

const finishTaskQuery = `
UPDATE task SET generation = ?, finished = TRUE, final = ?, finished_at = ?,
       verdict = ?, outcome = ?, reason = ?, attempted_at = ?, updated_at = ?
WHERE key = ? AND generation <= ?`

// putCallQuery keeps the first row of an attempt, except that the attempt's own
// report replaces a presumed crash.
const putCallQuery = `
INSERT INTO call (attempt_id, key, generation, source, path, queue, outcome, verdict, code, http_status,
       request_id, phase, latency_us, units, unit_basis, possibly_billed, price, cost, reason, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (attempt_id) DO UPDATE SET
       source = excluded.source, outcome = excluded.outcome, verdict = excluded.verdict, code = excluded.code,
       http_status = excluded.http_status, request_id = excluded.request_id, phase = excluded.phase,
       latency_us = excluded.latency_us, units = excluded.units, unit_basis = excluded.unit_basis,
       possibly_billed = excluded.possibly_billed, price = excluded.price, cost = excluded.cost,
       reason = excluded.reason, at = excluded.at
WHERE call.outcome = 'crash' AND excluded.outcome <> 'crash'`

// putResultQuery keeps the first verdict of a generation, except that a certain
// verdict of the same attempt replaces a presumption (crash, hold).
const putResultQuery = `
INSERT INTO result (key, generation, attempt_id, verdict, outcome, reason, final, body, finished_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key, generation) DO UPDATE SET
       verdict = excluded.verdict, outcome = excluded.outcome, reason = excluded.reason,
       final = excluded.final, body = excluded.body, finished_at = excluded.finished_at
WHERE result.attempt_id <> '' AND result.attempt_id = excluded.attempt_id
  AND (result.outcome = 'crash' OR result.verdict = 'hold')
  AND excluded.outcome <> 'crash' AND excluded.verdict <> 'hold'`

// Settle commits the settlements of one caller together, durably, or none of
// them. It is idempotent: doc.go has the rules for repeats, late arrivals and
// older generations. Concurrent callers share a transaction. The settlements
// must not be changed afterwards, because a call whose ctx ended may still be
// committed. An error for which IsUnavailable is true can be retried;
// one that wraps ErrInvalid cannot.
func (s *Store) Settle(ctx context.Context, settlements ...Settlement) error {
	for i := range settlements {
		if err := settlements[i].Validate(); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
	}
	if len(settlements) == 0 {
		return nil
	}
	return s.write(ctx, "settle", func(ctx context.Context, tx *sql.Tx) error {
		for i := range settlements {
			if err := s.settle(ctx, tx, &settlements[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) settle(ctx context.Context, tx *sql.Tx, st *Settlement) error {
	at := st.At.UnixMilli()
	if _, err := tx.StmtContext(ctx, s.stmts.ensureTask).ExecContext(ctx,
		st.Key, string(st.Path), text(st.queue()), bytesOrNull(st.Payload), st.Generation, at, at); err != nil {
		return fmt.Errorf("write the task row: %w", err)
	}
	if st.Call != nil {
		if err := s.putCall(ctx, tx, st); err != nil {
			return err
		}
	}
	if st.Finished {
		return s.finish(ctx, tx, st)
	}
	if st.Verdict == "" {
		_, err := tx.ExecContext(ctx, s.dialect.rebind(raiseTaskQuery), st.Generation, at, st.Key, st.Generation)
		if err != nil {
			return fmt.Errorf("raise the task's generation: %w", err)
		}
		return nil
	}
	if _, err := tx.StmtContext(ctx, s.stmts.touchTask).ExecContext(ctx,
		st.Generation, string(st.Verdict), string(st.Outcome), text(st.Reason), at, at,
		st.Key, st.Generation, st.Generation, at); err != nil {
		return fmt.Errorf("write the task's last attempt: %w", err)
	}
	return nil
}

// finish records the verdict of a generation and, if it counts, updates the task
// row.
func (s *Store) finish(ctx context.Context, tx *sql.Tx, st *Settlement) error {
	at, attempt := st.At.UnixMilli(), st.AttemptID
	if st.Call != nil {
		attempt = st.Call.AttemptID
	}
	res, err := tx.StmtContext(ctx, s.stmts.putResult).ExecContext(ctx,
		st.Key, st.Generation, attempt, string(st.Verdict), string(st.Outcome), text(st.Reason), st.Final,
		jsonOrNull(st.Result), at)
	if err != nil {
		return fmt.Errorf("write the result row: %w", err)
	}
	written, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("write the result row: %w", err)
	}
	if written == 0 {
		return nil // another verdict was first
	}
	if _, err := tx.StmtContext(ctx, s.stmts.finishTask).ExecContext(ctx,
		st.Generation, st.Final, at, string(st.Verdict), string(st.Outcome), text(st.Reason), at, at,
		st.Key, st.Generation); err != nil {
		return fmt.Errorf("write the task's verdict: %w", err)
	}
	return nil
}

func (s *Store) putCall(ctx context.Context, tx *sql.Tx, st *Settlement) error {
	c := st.Call
	path := c.Path
	if path == "" {
		path = st.Path
	}
	if _, err := tx.StmtContext(ctx, s.stmts.putCall).ExecContext(ctx,
		c.AttemptID, c.Key, c.Generation, text(c.Source), string(path), text(st.queue()), string(c.Outcome), string(c.Verdict),
		c.Code, c.HTTPStatus, text(c.RequestID), c.Phase, c.Latency.Microseconds(), c.Units, c.UnitBasis,
		c.PossiblyBilled, floatOrNull(c.Price), floatOrNull(c.Cost), text(c.Reason), c.At.UnixMilli()); err != nil {
		return fmt.Errorf("write the call row: %w", err)
	}
	return nil
}

// queue is the queue the work belongs to: the path's own when none is named.
func (st *Settlement) queue() string {
	if st.Queue == "" {
		return st.Path.Queue("")
	}
	return st.Queue
}
