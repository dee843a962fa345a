package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/text"
	"reprise/store"
	"reprise/tasks"
)

// Costs reports what calls used and cost.
type Costs struct{ *base }

// CostBy is what one row of a cost report sums.
type CostBy string

// The closed set.
const (
	ByDay     CostBy = "day" // of Options.Zone
	BySource  CostBy = "source"
	ByPath    CostBy = "path"
	ByGroup   CostBy = "group" // that paid
	ByOutcome CostBy = "outcome"
)

// CostBys lists the values of CostBy.
var CostBys = []CostBy{ByDay, BySource, ByPath, ByGroup, ByOutcome}

// Cost sums the calls of one day, source, path, group or outcome.
type Cost struct {
	store.CallSum
	// CostAtPrice is Cost plus the unpriced units at Options.Price; null = this price is unknown, too.
	CostAtPrice *float64 `json:"cost_at_price"`
}

// Money returns the known cost as text, "unknown" if no cost is known. Unpriced units count at Options.Price if it is
// set.
func (c Cost) Money() string {
	switch {
	case c.CostAtPrice != nil:
		return text.Dollars(*c.CostAtPrice)
	case c.Cost != nil:
		return text.Dollars(*c.Cost)
	}
	return "unknown"
}

// Sentence returns the known cost and how many units have no known price.
func (c Cost) Sentence() string {
	switch {
	case c.CostAtPrice != nil:
		return c.Money()
	case c.Cost == nil:
		return "price unknown (--price-per-1000)"
	}
	return fmt.Sprintf("%s and %s of unknown price (--price-per-1000)", c.Money(), text.Count(c.UnpricedUnits, "unit", "units"))
}

// costRow prices the unpriced units of a sum at a price per 1,000; 0 = unknown.
func costRow(of string, s store.CallSum, price float64) Cost {
	c := Cost{CallSum: s}
	c.Of = of
	if price > 0 || s.UnpricedUnits == 0 {
		sum := float64(s.UnpricedUnits) * price / 1000
		if s.Cost != nil {
			sum += *s.Cost
		}
		c.CostAtPrice = &sum
	}
	return c
}

// CostReport is what calls used and cost.
type CostReport struct {
	By    CostBy     `json:"by"`
	Since *time.Time `json:"since"`
	Until *time.Time `json:"until"`
	Rows  []Cost     `json:"rows"`
	Total Cost       `json:"total"`
	Gaps  []string   `json:"gaps"` // what is unknown, in sentences
}

// Report sums the calls that ended in since ≤ at < until, with one row per day, source, path, group or outcome, sorted.
func (c *Costs) Report(ctx context.Context, by CostBy, since, until time.Time) (CostReport, error) {
	if err := among("by", by, CostBys); err != nil {
		return CostReport{}, err
	}
	if !since.Before(until) {
		return CostReport{}, invalid("since must be before until")
	}
	columns := map[CostBy]store.CallGroup{
		ByDay: store.ByQuarterHour, BySource: store.BySource, ByPath: store.ByPath, ByGroup: store.ByQueue, ByOutcome: store.ByOutcome,
	}
	sums, err := c.Store.SumCalls(ctx, store.CallFilter{Since: since, Until: until}, columns[by])
	if err != nil {
		return CostReport{}, err
	}
	for i, s := range sums {
		switch by {
		case ByDay:
			sums[i].Of = s.Start.In(c.Zone).Format(time.DateOnly)
		case ByGroup:
			_, group, _ := tasks.SplitQueue(s.Of)
			sums[i].Of = cmp.Or(group, "(no group)")
		case BySource:
			sums[i].Of = cmp.Or(s.Of, "(none)")
		case ByPath, ByOutcome:
		}
	}
	r := NewCostReport(by, sums, c.Price)
	r.Since, r.Until = stamp(since), stamp(until)
	return r, nil
}

// NewCostReport merges sums of the same name, prices the unpriced units at a price per 1,000 (0 = unknown), and adds
// the total and its gaps. It leaves Since and Until unset.
func NewCostReport(by CostBy, sums []store.CallSum, price float64) CostReport {
	slices.SortStableFunc(sums, func(a, b store.CallSum) int { return strings.Compare(a.Of, b.Of) })
	r := CostReport{By: by, Rows: []Cost{}}
	var total, row store.CallSum
	for i, s := range sums {
		total = merged(total, s)
		row = merged(row, s)
		if i+1 == len(sums) || sums[i+1].Of != s.Of {
			r.Rows = append(r.Rows, costRow(s.Of, row, price))
			row = store.CallSum{}
		}
	}
	r.Total = costRow("total", total, price)
	r.Gaps = gapsOf(r.Total, price)
	return r
}

func merged(a, b store.CallSum) store.CallSum {
	if b.Cost != nil {
		sum := *b.Cost
		if a.Cost != nil {
			sum += *a.Cost
		}
		a.Cost = &sum
	}
	a.Calls, a.Units = a.Calls+b.Calls, a.Units+b.Units
	a.UnpricedUnits, a.UnpricedCalls = a.UnpricedUnits+b.UnpricedUnits, a.UnpricedCalls+b.UnpricedCalls
	a.PossiblyBilled, a.UnknownUnits = a.PossiblyBilled+b.PossiblyBilled, a.UnknownUnits+b.UnknownUnits
	a.EstimatedUnits += b.EstimatedUnits
	return a
}

// gapsOf returns what is unknown about a sum.
func gapsOf(c Cost, price float64) []string {
	out := []string{}
	if c.UnpricedUnits > 0 {
		gap := fmt.Sprintf("the price of %s in %s", text.Count(c.UnpricedUnits, "unit", "units"), text.Count(c.UnpricedCalls, "call", "calls"))
		if price > 0 {
			gap += fmt.Sprintf(" when they were made; they are counted at %s/1000", text.Dollars(price))
		}
		out = append(out, gap)
	}
	if c.PossiblyBilled > 0 {
		out = append(out, fmt.Sprintf("whether AudD billed %s that ended without a result", text.Count(c.PossiblyBilled, "call", "calls")))
	}
	if c.UnknownUnits > 0 {
		out = append(out, "the units of "+text.Count(c.UnknownUnits, "call", "calls"))
	}
	if c.EstimatedUnits > 0 {
		out = append(out, fmt.Sprintf("AudD's own count for %s, which are estimated", text.Count(c.EstimatedUnits, "unit", "units")))
	}
	return out
}
