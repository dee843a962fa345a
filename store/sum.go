package store

import (
	"context"
	"fmt"
	"time"
)

// CallGroup is the property by which SumCalls groups calls.
type CallGroup string

// The groupings of SumCalls. A day in any time zone consists of whole quarter hours.
const (
	ByQuarterHour CallGroup = "quarter_hour"
	BySource      CallGroup = "source"
	ByPath        CallGroup = "path"
	ByQueue       CallGroup = "queue"
	ByOutcome     CallGroup = "outcome"
)

const quarterHour = 15 * time.Minute

// groupColumns maps each grouping to its SQL expression.
var groupColumns = map[CallGroup]string{
	ByQuarterHour: fmt.Sprintf("at / %d", quarterHour.Milliseconds()),
	BySource:      "source", ByPath: "path", ByQueue: "queue", ByOutcome: "outcome",
}

// CallSum is the sum of one group's calls.
type CallSum struct {
	Of    string    `json:"of"` // source, path, queue or outcome; "" for quarter hours
	Start time.Time `json:"-"`  // start of the quarter hour; zero for other groupings
	Calls int64     `json:"calls"`
	Units int64     `json:"units"`
	// Cost is the sum of the known costs. nil means that no cost is known.
	Cost *float64 `json:"cost"`
	// UnpricedUnits and UnpricedCalls count calls with units but without a known cost.
	UnpricedUnits int64 `json:"unpriced_units"`
	UnpricedCalls int64 `json:"unpriced_calls"`
	// PossiblyBilled counts calls that AudD may have billed without confirming it.
	PossiblyBilled int64 `json:"possibly_billed_calls"`
	// UnknownUnits counts calls whose units are neither known nor estimated.
	UnknownUnits int64 `json:"unknown_unit_calls"`
	// EstimatedUnits counts the part of Units that is estimated, because AudD did not report it.
	EstimatedUnits int64 `json:"estimated_units"`
}

// SumCalls sums calls by group. The group with the earliest call is first. The filter's Limit is the maximum number
// of groups; 0 = 100,000. For an unknown grouping the error wraps ErrInvalid.
func (s *Store) SumCalls(ctx context.Context, f CallFilter, by CallGroup) ([]CallSum, error) {
	column, known := groupColumns[by]
	if !known {
		return nil, fmt.Errorf("sum calls by %q: %w", by, ErrInvalid)
	}
	if f.Limit == 0 {
		f.Limit = maxLimit
	}
	q := f.query()
	q.order = "GROUP BY " + column + " ORDER BY MIN(at), " + column
	q.selection = `
SELECT ` + column + `, MIN(at), COUNT(*), SUM(units), SUM(cost),
       SUM(CASE WHEN cost IS NULL AND units > 0 THEN units ELSE 0 END),
       SUM(CASE WHEN cost IS NULL AND units > 0 THEN 1 ELSE 0 END),
       SUM(CASE WHEN possibly_billed THEN 1 ELSE 0 END),
       SUM(CASE WHEN unit_basis = 'unavailable' THEN 1 ELSE 0 END),
       SUM(CASE WHEN unit_basis = 'estimated' THEN units ELSE 0 END)
FROM call`
	return readAll(ctx, s, "sum calls", q, func(row scanner) (c CallSum, err error) {
		var first time.Time
		err = row.Scan(&c.Of, instant{&first}, &c.Calls, &c.Units, &c.Cost, &c.UnpricedUnits, &c.UnpricedCalls,
			&c.PossiblyBilled, &c.UnknownUnits, &c.EstimatedUnits)
		if by == ByQuarterHour {
			c.Of, c.Start = "", first.Truncate(quarterHour)
		}
		return c, err
	})
}

// Spent returns the units of all matching calls, to restore a lost budget counter. A call counts for the group of its
// own queue, even if its task was moved or deleted later. The filter's Limit is ignored.
func (s *Store) Spent(ctx context.Context, f CallFilter) (units int64, err error) {
	q := f.query()
	q.selection, q.limit = "SELECT COALESCE(SUM(units), 0) FROM call", 1
	err = s.each(ctx, "sum spent units", q, func(row scanner) error { return row.Scan(&units) })
	return units, err
}
