package store

import (
	"context"
	"database/sql"
	"time"

	"reprise/tasks"
)

// CallFilter selects calls; fields that are set must all match.
type CallFilter struct {
	Key, AttemptID, Source, Queue string
	Path                          tasks.Path
	Outcome                       tasks.Outcome
	PossiblyBilled                bool // true = only those
	// Since and Until bound the call's end: Since ≤ at < Until. Zero = open.
	Since, Until time.Time
	Limit        int // 0 = 1,000; at most 100,000
}

const callSelection = `
SELECT attempt_id, key, generation, source, path, outcome, verdict, code, http_status, request_id, phase,
       latency_us, units, unit_basis, possibly_billed, price, cost, reason, at
FROM call`

// Calls reads calls, oldest first.
func (s *Store) Calls(ctx context.Context, f CallFilter) ([]Call, error) {
	q := f.query()
	var found []Call
	statement := q.sql(callSelection, "ORDER BY at, attempt_id", f.Limit)
	err := s.each(ctx, "read calls", statement, q.args, func(rows *sql.Rows) error {
		c, err := scanCall(rows)
		if err == nil {
			found = append(found, c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (f CallFilter) query() *query {
	q := &query{}
	q.equal("key", f.Key)
	q.equal("attempt_id", f.AttemptID)
	q.equal("source", f.Source)
	q.equal("queue", f.Queue)
	q.equal("path", string(f.Path))
	q.equal("outcome", string(f.Outcome))
	if f.PossiblyBilled {
		q.where("possibly_billed")
	}
	q.between("at", f.Since, f.Until)
	return q
}

func scanCall(rows *sql.Rows) (Call, error) {
	var c Call
	var latency int64
	var at sql.NullInt64
	var price, cost sql.NullFloat64
	err := rows.Scan(&c.AttemptID, &c.Key, &c.Generation, &c.Source, &c.Path, &c.Outcome, &c.Verdict, &c.Code,
		&c.HTTPStatus, &c.RequestID, &c.Phase, &latency, &c.Units, &c.UnitBasis, &c.PossiblyBilled,
		&price, &cost, &c.Reason, &at)
	c.Latency = time.Duration(latency) * time.Microsecond
	c.Price, c.Cost, c.At = pointer(price), pointer(cost), instant(at)
	return c, err
}
