package store

import (
	"context"
	"time"

	"reprise/tasks"
)

// CallFilter selects the calls that match all set fields.
type CallFilter struct {
	Key, AttemptID, Source string
	Path                   tasks.Path
	Group                  string // group of the queue that the call was made for
	// Since and Until limit the call's end time: Since ≤ At < Until. A zero time sets no limit.
	Since, Until time.Time
	Limit        int // 0 = 1,000; at most 100,000
}

func (f CallFilter) query() *query {
	q := &query{limit: rowLimit(f.Limit)}
	q.equal("key", f.Key)
	q.equal("attempt_id", f.AttemptID)
	q.equal("source", f.Source)
	q.equal("path", string(f.Path))
	if f.Group != "" {
		var queues []string
		for _, path := range tasks.Paths {
			queues = append(queues, path.Queue(f.Group))
		}
		q.in("queue", queues)
	}
	q.between("at", f.Since, f.Until)
	return q
}

// Calls returns calls, oldest first.
func (s *Store) Calls(ctx context.Context, f CallFilter) ([]Call, error) {
	return s.calls(ctx, "ORDER BY at, attempt_id", f)
}

// LastCall returns a task's latest call. found is false if the task has no call.
func (s *Store) LastCall(ctx context.Context, key string) (last Call, found bool, err error) {
	calls, err := s.calls(ctx, "ORDER BY at DESC, attempt_id DESC", CallFilter{Key: key, Limit: 1})
	if err != nil || len(calls) == 0 {
		return Call{}, false, err
	}
	return calls[0], true, nil
}

func (s *Store) calls(ctx context.Context, order string, f CallFilter) ([]Call, error) {
	q := f.query()
	q.order = order
	q.selection = `
SELECT attempt_id, key, generation, source, path, outcome, verdict, code, http_status, request_id, phase,
       latency_us, units, unit_basis, possibly_billed, price, cost, reason, at
FROM call`
	return readAll(ctx, s, "list calls", q, func(row scanner) (c Call, err error) {
		var latency int64
		err = row.Scan(&c.AttemptID, &c.Key, &c.Generation, &c.Source, &c.Path, &c.Outcome, &c.Verdict, &c.Code,
			&c.HTTPStatus, &c.RequestID, &c.Phase, &latency, &c.Units, &c.UnitBasis, &c.PossiblyBilled,
			&c.Price, &c.Cost, &c.Reason, instant{&c.At})
		c.Latency = time.Duration(latency) * time.Microsecond
		return c, err
	})
}
