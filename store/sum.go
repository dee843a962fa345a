package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"reprise/tasks"
)

// CallGroup is what sums of calls are made by.
type CallGroup string

// The closed set of groupings. A quarter of an hour is the finest that days of every time zone can be made of.
const (
	ByQuarterHour CallGroup = "quarter_hour"
	BySource      CallGroup = "source"
	ByPath        CallGroup = "path"
	ByQueue       CallGroup = "queue"
	ByOutcome     CallGroup = "outcome"
)

const quarterHour = 15 * time.Minute

// callGroups are the columns that the groupings read.
var callGroups = map[CallGroup]string{
	ByQuarterHour: fmt.Sprintf("CAST(at / %d AS TEXT)", quarterHour.Milliseconds()),
	BySource:      "source", ByPath: "path", ByQueue: "queue", ByOutcome: "outcome",
}

// CallSum sums calls.
type CallSum struct {
	Of    string    `json:"of"` // the source, path, queue or outcome; "" for quarter hours
	Start time.Time `json:"-"`  // of the quarter hour; zero for other groupings
	Calls int64     `json:"calls"`
	Units int64     `json:"units"`
	// Cost is the sum of the known costs; nil = no cost is known.
	Cost *float64 `json:"cost"`
	// UnpricedUnits and UnpricedCalls have units but no known cost.
	UnpricedUnits int64 `json:"unpriced_units"`
	UnpricedCalls int64 `json:"unpriced_calls"`
	// PossiblyBilled calls may be billed without an answer that says so.
	PossiblyBilled int64 `json:"possibly_billed_calls"`
	// UnknownUnits counts calls whose units are not even estimated.
	UnknownUnits int64 `json:"unknown_unit_calls"`
	// EstimatedUnits are those of Units that AudD did not state.
	EstimatedUnits int64 `json:"estimated_units"`
}

// SumCalls sums the calls that the filter selects, in the order of the groups. The filter's Limit bounds the groups.
func (s *Store) SumCalls(ctx context.Context, f CallFilter, by CallGroup) ([]CallSum, error) {
	column, known := callGroups[by]
	if !known {
		return nil, fmt.Errorf("sum calls by %q: %w", by, ErrInvalid)
	}
	if f.Limit == 0 {
		f.Limit = maxLimit
	}
	q := f.query()
	statement := q.sql(`
SELECT `+column+`, COUNT(*), SUM(units), SUM(cost),
       SUM(CASE WHEN cost IS NULL AND units > 0 THEN units ELSE 0 END),
       SUM(CASE WHEN cost IS NULL AND units > 0 THEN 1 ELSE 0 END),
       SUM(CASE WHEN possibly_billed THEN 1 ELSE 0 END),
       SUM(CASE WHEN unit_basis = 'unavailable' THEN 1 ELSE 0 END),
       SUM(CASE WHEN unit_basis = 'estimated' THEN units ELSE 0 END)
FROM call`, "GROUP BY "+column+" ORDER BY MIN(at), "+column, f.Limit)
	var sums []CallSum
	err := s.each(ctx, "sum calls", statement, q.args, func(rows *sql.Rows) error {
		var c CallSum
		var cost sql.NullFloat64
		err := rows.Scan(&c.Of, &c.Calls, &c.Units, &cost, &c.UnpricedUnits, &c.UnpricedCalls, &c.PossiblyBilled, &c.UnknownUnits, &c.EstimatedUnits)
		c.Cost = pointer(cost)
		sums = append(sums, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	if by == ByQuarterHour {
		for i := range sums {
			var n int64
			if _, err := fmt.Sscan(sums[i].Of, &n); err != nil {
				return nil, s.failed("sum calls", err)
			}
			sums[i].Of, sums[i].Start = "", time.UnixMilli(n*quarterHour.Milliseconds()).UTC()
		}
	}
	return sums, nil
}

// LastCall reads the latest call of a task; false if it made none.
func (s *Store) LastCall(ctx context.Context, key string) (last Call, found bool, err error) {
	q := CallFilter{Key: key}.query()
	statement := q.sql(callSelection, "ORDER BY at DESC, attempt_id DESC", 1)
	err = s.each(ctx, "read the last call of a task", statement, q.args, func(rows *sql.Rows) error {
		last, err = scanCall(rows)
		found = true
		return err
	})
	return last, found, err
}

// CountByOutcome counts the tasks that a filter selects by their outcome.
func (s *Store) CountByOutcome(ctx context.Context, f TaskFilter) (map[tasks.Outcome]int64, error) {
	q := f.query()
	counts := map[tasks.Outcome]int64{}
	statement := q.sql("SELECT t.outcome, COUNT(*) FROM task t", "GROUP BY t.outcome", maxLimit)
	err := s.each(ctx, "count tasks by outcome", statement, q.args, func(rows *sql.Rows) error {
		var outcome tasks.Outcome
		var n int64
		err := rows.Scan(&outcome, &n)
		counts[outcome] = n
		return err
	})
	return counts, err
}
