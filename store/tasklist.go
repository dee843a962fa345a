package store

import (
	"context"
	"time"

	"reprise/tasks"
)

// TaskFilter selects the tasks that match all set fields.
type TaskFilter struct {
	Path    tasks.Path
	Queue   string
	Verdict tasks.Verdict
	Outcome tasks.Outcome
	// Source selects tasks with a call to this source.
	Source string
	// Text selects tasks whose key, reason or input name contains the text. Case is ignored.
	Text string
	// Finished selects finished (true) or unfinished (false) tasks; nil = all.
	Finished *bool
	// Replayable selects archived tasks that are not tombstones.
	Replayable bool
	// Reopened selects tasks that have not been attempted since they were reopened.
	Reopened bool
	// Since and Until limit the last change: Since ≤ UpdatedAt < Until. A zero time sets no limit.
	Since, Until time.Time
	// AfterAt and AfterKey are the UpdatedAt and Key of the previous page's last row.
	AfterAt  time.Time
	AfterKey string
	Limit    int // 0 = 1,000; at most 100,000
}

// Tasks returns tasks without their results. The least recently changed task is first.
func (s *Store) Tasks(ctx context.Context, f TaskFilter) ([]TaskStatus, error) {
	q := f.query()
	q.selection, q.order = "SELECT "+taskColumns+" FROM task t", "ORDER BY t.updated_at, t.key"
	return readAll(ctx, s, "list tasks", q, func(row scanner) (t TaskStatus, err error) {
		err = scanTask(row, &t)
		return t, err
	})
}

// CountByOutcome counts tasks by outcome. The filter's Limit is ignored.
func (s *Store) CountByOutcome(ctx context.Context, f TaskFilter) (map[tasks.Outcome]int64, error) {
	q := f.query()
	q.selection, q.order, q.limit = "SELECT t.outcome, COUNT(*) FROM task t", "GROUP BY t.outcome", maxLimit
	counts := map[tasks.Outcome]int64{}
	err := s.each(ctx, "count tasks by outcome", q, func(row scanner) error {
		var outcome tasks.Outcome
		var n int64
		err := row.Scan(&outcome, &n)
		counts[outcome] = n
		return err
	})
	return counts, err
}

func (f TaskFilter) query() *query {
	q := &query{limit: rowLimit(f.Limit)}
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
