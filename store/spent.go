package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"reprise/tasks"
)

// SpentFilter selects the calls whose units are summed; empty fields match all.
type SpentFilter struct {
	Since, Until time.Time // ended in Since ≤ at < Until
	Source       string
	Path         tasks.Path
	Group        string // of the queue the call was made for
}

// Spent sums the units of calls, to seed a budget whose counter was lost.
func (s *Store) Spent(ctx context.Context, f SpentFilter) (int64, error) {
	var q query
	q.between("at", f.Since, f.Until)
	q.equal("source", f.Source)
	q.equal("path", string(f.Path))
	if f.Group != "" {
		// A call row keeps its queue: it counts for that group even if the task
		// moved or was deleted.
		marks := make([]string, 0, len(tasks.Paths))
		queues := make([]any, 0, len(tasks.Paths))
		for _, path := range tasks.Paths {
			marks, queues = append(marks, "?"), append(queues, path.Queue(f.Group))
		}
		q.where("queue IN ("+strings.Join(marks, ", ")+")", queues...)
	}
	var sum sql.NullInt64
	statement := q.sql(`SELECT SUM(units) FROM call`, "", 1)
	if err := s.db.QueryRowContext(ctx, s.dialect.rebind(statement), q.args...).Scan(&sum); err != nil {
		return 0, s.failed("sum spent units", fmt.Errorf("scan the sum: %w", err))
	}
	return sum.Int64, nil
}
