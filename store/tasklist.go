package store

import (
	"context"
	"database/sql"
	"time"

	"reprise/tasks"
)

// TaskFilter selects tasks; fields that are set must all match.
type TaskFilter struct {
	Path    tasks.Path
	Queue   string
	Verdict tasks.Verdict
	Outcome tasks.Outcome
	// Source selects tasks that were tried on the source.
	Source string
	// Text is searched in key, reason and input names, ignoring case.
	Text string
	// Finished, when set, selects finished or unfinished tasks.
	Finished *bool
	// Replayable selects archived tasks without a tombstone.
	Replayable bool
	// Reopened selects re-opened tasks that have not been tried since.
	Reopened bool
	// Since and Until bound the last change: Since ≤ updated < Until. Zero = open.
	Since, Until time.Time
	// AfterAt and AfterKey are updated_at and key of the last row of the previous page.
	AfterAt  time.Time
	AfterKey string
	Limit    int // 0 = 1,000; at most 100,000
}

// TaskRow is a task in a list, without payload and result.
type TaskRow struct {
	Key        string
	Path       tasks.Path
	Queue      string
	Generation int64
	Finished   bool
	Verdict    tasks.Verdict
	Outcome    tasks.Outcome
	Reason     string
	Final      bool
	// AttemptedAt is zero before the generation's first attempt, FinishedAt
	// zero until it is finished.
	CreatedAt, AttemptedAt, UpdatedAt, FinishedAt time.Time
}

const taskSelection = `
SELECT t.key, t.path, t.queue, t.generation, t.finished, t.verdict, t.outcome, t.reason, t.final,
       t.created_at, t.attempted_at, t.updated_at, t.finished_at
FROM task t`

// Tasks reads tasks in the order of their last change, oldest first.
func (s *Store) Tasks(ctx context.Context, f TaskFilter) ([]TaskRow, error) {
	q := f.query()
	var found []TaskRow
	statement := q.sql(taskSelection, "ORDER BY t.updated_at, t.key", f.Limit)
	err := s.each(ctx, "read tasks", statement, q.args, func(rows *sql.Rows) error {
		row, err := scanTask(rows)
		if err == nil {
			found = append(found, row)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (f TaskFilter) query() *query {
	q := &query{}
	q.equal("t.path", string(f.Path))
	q.equal("t.queue", f.Queue)
	q.equal("t.verdict", string(f.Verdict))
	q.equal("t.outcome", string(f.Outcome))
	if f.Finished != nil {
		q.where("t.finished = ?", *f.Finished)
	}
	if f.Replayable {
		q.where("t.finished AND t.verdict = 'archive' AND NOT t.final")
	}
	if f.Reopened {
		q.where("NOT t.finished AND t.generation > 0 AND t.verdict = '' AND t.attempted_at IS NULL")
	}
	if f.Source != "" {
		q.where("EXISTS (SELECT 1 FROM call c WHERE c.key = t.key AND c.source = ?)", f.Source)
	}
	if f.Text != "" {
		pattern := likePattern(f.Text)
		q.where(`(LOWER(t.reason) LIKE ? ESCAPE '\' OR LOWER(t.key) LIKE ? ESCAPE '\'
      OR EXISTS (SELECT 1 FROM submission n WHERE n.key = t.key AND LOWER(n.name) LIKE ? ESCAPE '\'))`, pattern, pattern, pattern)
	}
	q.between("t.updated_at", f.Since, f.Until)
	if f.AfterKey != "" {
		at := f.AfterAt.UnixMilli()
		q.where("(t.updated_at > ? OR (t.updated_at = ? AND t.key > ?))", at, at, f.AfterKey)
	}
	return q
}

func scanTask(rows *sql.Rows) (TaskRow, error) {
	var t TaskRow
	var created, attempted, updated, finished sql.NullInt64
	err := rows.Scan(&t.Key, &t.Path, &t.Queue, &t.Generation, &t.Finished, &t.Verdict, &t.Outcome, &t.Reason, &t.Final,
		&created, &attempted, &updated, &finished)
	t.CreatedAt, t.AttemptedAt = instant(created), instant(attempted)
	t.UpdatedAt, t.FinishedAt = instant(updated), instant(finished)
	return t, err
}
