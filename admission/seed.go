package admission

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// PeriodUnits is the number of units that settled calls used in a period.
type PeriodUnits struct {
	Period
	Spent int64 // sum of the call rows' units in [Start, End), read after the budget was found missing
}

// MissingPeriods means that unit budgets are not in Redis: a new day or month has begun, or Redis lost them. They admit
// nothing until Seed has written them from the call rows. Then the caller acquires again.
type MissingPeriods struct { //nolint:errname // as Refusal
	Periods []Period
}

func (m *MissingPeriods) Error() string {
	names := make([]string, len(m.Periods))
	for i, p := range m.Periods {
		names[i] = p.Name
	}
	return "unit budgets are missing: " + strings.Join(names, ", ")
}

// missing returns the error for budgets that were found missing at a moment (ms of Redis's clock).
func (g *Gates) missing(at int64, names []string) error {
	m := &MissingPeriods{}
	for _, name := range names {
		p, err := g.period(name, moment(at))
		if err != nil {
			return fmt.Errorf("read admission reply: %w: %w", ErrUnavailable, err)
		}
		p.foundMissing = at
		m.Periods = append(m.Periods, p)
	}
	return m
}

// budgetKept is how long a budget is kept after its period. No call takes so long to be settled.
const budgetKept = 40 * 24 * time.Hour

// Seed writes missing budgets and returns how many it wrote. It does not change existing ones, so the first of many workers
// wins. The script adds the calls in flight, and the calls that were settled since the budget was found missing. Such calls
// may be in the rows too: they are then counted twice, which is safer than not at all.
func (g *Gates) Seed(ctx context.Context, periods ...PeriodUnits) (int, error) {
	if len(periods) == 0 {
		return 0, nil
	}
	budgets := make([]map[string]any, len(periods))
	for i, p := range periods {
		budgets[i] = map[string]any{
			"name": p.Name, "spent": max(0, p.Spent), "found_missing_at": p.foundMissing, "ttl_ms": (time.Until(p.End) + budgetKept).Milliseconds(),
		}
	}
	var reply struct {
		Written int `json:"written"`
	}
	if err := g.run(ctx, seedScript, map[string]any{"budgets": budgets}, &reply); err != nil {
		return 0, fmt.Errorf("seed unit budgets: %w", err)
	}
	return reply.Written, nil
}
