package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"reprise/tasks"
)

var insertTask = &statement{"create the task row", `
INSERT INTO task (key, path, queue, payload, generation, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO NOTHING`}

// touchTask writes the latest decision to an unfinished task. It also raises the generation of an older row, for
// example after the database was restored from a backup.
var touchTask = &statement{"write the latest attempt to the task row", `
UPDATE task SET generation = ?, finished = FALSE, final = FALSE, finished_at = NULL,
       verdict = ?, outcome = ?, reason = ?, attempted_at = ?, updated_at = ?
WHERE key = ? AND (generation < ? OR
      (generation = ? AND NOT finished AND (attempted_at IS NULL OR attempted_at < ?)))`}

var finishTask = &statement{"write the final verdict to the task row", `
UPDATE task SET generation = ?, finished = TRUE, final = ?, finished_at = ?,
       verdict = ?, outcome = ?, reason = ?, attempted_at = ?, updated_at = ?
WHERE key = ? AND generation <= ?`}

// putCall keeps an attempt's first row. The exception is a presumed crash, which the attempt's own report replaces.
var putCall = &statement{"write the call row", `
INSERT INTO call (attempt_id, key, generation, source, path, queue, outcome, verdict, code, http_status,
       request_id, phase, latency_us, units, unit_basis, possibly_billed, price, cost, reason, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (attempt_id) DO UPDATE SET
       source = excluded.source, outcome = excluded.outcome, verdict = excluded.verdict, code = excluded.code,
       http_status = excluded.http_status, request_id = excluded.request_id, phase = excluded.phase,
       latency_us = excluded.latency_us, units = excluded.units, unit_basis = excluded.unit_basis,
       possibly_billed = excluded.possibly_billed, price = excluded.price, cost = excluded.cost,
       reason = excluded.reason, at = excluded.at
WHERE call.outcome = 'crash' AND excluded.outcome <> 'crash'`}

// putResult keeps a generation's first verdict. The exception is a presumption (outcome crash or verdict hold), which
// a certain verdict of the same attempt replaces.
var putResult = &statement{"write the result row", `
INSERT INTO result (key, generation, attempt_id, verdict, outcome, reason, final, body, finished_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key, generation) DO UPDATE SET
       verdict = excluded.verdict, outcome = excluded.outcome, reason = excluded.reason,
       final = excluded.final, body = excluded.body, finished_at = excluded.finished_at
WHERE result.attempt_id <> '' AND result.attempt_id = excluded.attempt_id
  AND (result.outcome = 'crash' OR result.verdict = 'hold')
  AND excluded.outcome <> 'crash' AND excluded.verdict <> 'hold'`}

// Settle durably commits all settlements or none. Repeats change nothing. doc.go has the rules for late settlements
// and older generations. Concurrent callers share a transaction. The caller must not change the settlements
// afterwards, because they may still be committed after ctx ends. Settle can be retried if IsUnavailable is true for
// its error. It cannot be retried if the error wraps ErrInvalid.
func (s *Store) Settle(ctx context.Context, settlements ...Settlement) error {
	for i := range settlements {
		if err := settlements[i].validate(); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
	}
	if len(settlements) == 0 {
		return nil
	}
	defer s.marked.Store(false)
	return s.write(ctx, "settle", func(ctx context.Context, tx *sql.Tx) error {
		for i := range settlements {
			if err := s.stmts.settle(ctx, tx, &settlements[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p statements) settle(ctx context.Context, tx *sql.Tx, st *Settlement) error {
	at, queue := st.At.UnixMilli(), queueOrDefault(st.Queue, st.Path)
	_, err := p.exec(ctx, tx, insertTask, st.Key, st.Path, queue, bytesOrNull(st.Payload), st.Generation, at, at)
	if err != nil {
		return err
	}
	if c := st.Call; c != nil {
		_, err := p.exec(ctx, tx, putCall,
			c.AttemptID, c.Key, c.Generation, text(c.Source), c.Path, queue, c.Outcome, c.Verdict,
			c.Code, c.HTTPStatus, text(c.RequestID), c.Phase, c.Latency.Microseconds(), c.Units, c.UnitBasis,
			c.PossiblyBilled, c.Price, c.Cost, text(c.Reason), c.At.UnixMilli())
		if err != nil {
			return err
		}
	}
	switch {
	case st.Finished:
		return p.finish(ctx, tx, st)
	case st.Verdict == "":
		_, err = p.exec(ctx, tx, raiseTask, st.Generation, at, st.Key, st.Generation, true)
	default:
		_, err = p.exec(ctx, tx, touchTask, st.Generation, st.Verdict, st.Outcome, text(st.Reason), at, at,
			st.Key, st.Generation, st.Generation, at)
	}
	return err
}

// finish writes a generation's result row. It also updates the task row, unless the generation already has a result.
func (p statements) finish(ctx context.Context, tx *sql.Tx, st *Settlement) error {
	at, attempt, reason := st.At.UnixMilli(), st.AttemptID, text(st.Reason)
	if st.Call != nil {
		attempt = st.Call.AttemptID
	}
	written, err := p.exec(ctx, tx, putResult, st.Key, st.Generation, attempt, st.Verdict, st.Outcome, reason, st.Final,
		jsonOrNull(st.Result), at)
	if err != nil || written == 0 {
		return err
	}
	_, err = p.exec(ctx, tx, finishTask, st.Generation, st.Final, at, st.Verdict, st.Outcome, reason, at, at,
		st.Key, st.Generation)
	return err
}

// queueOrDefault returns the queue as valid text, or the path's queue if queue is "".
func queueOrDefault(queue string, path tasks.Path) string {
	return text(cmp.Or(queue, path.Queue("")))
}
