package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"reprise/tasks"
)

// Spending chooses the calls whose units are summed; empty fields choose all.
type Spending struct {
	Since, Until time.Time // ended in Since ≤ at < Until
	Source       string
	Path         tasks.Path
	Group        string // of the queue the task is in
}

// Spent sums the units of calls, to seed a budget whose counter was lost.
func (s *Store) Spent(ctx context.Context, f Spending) (int64, error) {
	var q query
	q.between("c.at", f.Since, f.Until)
	q.equal("c.source", f.Source)
	q.equal("c.path", string(f.Path))
	if f.Group != "" {
		q.where("t.queue LIKE ? ESCAPE '\\'", "%."+likeLiteral(f.Group))
	}
	var sum sql.NullInt64
	text := q.sql(`SELECT SUM(c.units) FROM call c LEFT JOIN task t ON t.key = c.key`, "", 1)
	if err := s.db.QueryRowContext(ctx, s.dialect.rebind(text), q.args...).Scan(&sum); err != nil {
		return 0, s.failed("sum spent units", fmt.Errorf("scan the sum: %w", err))
	}
	return sum.Int64, nil
}
