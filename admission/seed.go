package admission

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// PeriodUnits is what settled calls used in a period.
type PeriodUnits struct {
	Period
	Spent int64 // sum of the units of the call rows in [Start, End), read after the budget was found missing
}

// MissingPeriods says that unit budgets are not in Redis: a new day or month has
// begun, or Redis lost them. Nothing is admitted on them until Seed has written
// what the call rows say; then the caller acquires again.
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

// missing is the error for budgets that were found missing, at a ms of Redis's clock.
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

// budgetKept is how long a budget outlasts its period: longer than any call may
// take to be settled.
const budgetKept = 40 * 24 * time.Hour

// Seed writes budgets that are missing and returns how many; one that exists is
// left alone, so that of many workers the first wins. The script adds the calls in
// flight and those settled since the budget was found missing: these may be in the
// rows too, and then count twice rather than not at all.
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
