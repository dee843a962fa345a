package admission

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reprise/tasks"
)

// Period is one unit budget and the time it covers.
type Period struct {
	Name       string     // of the budget in Redis: <scope>:<2026-11-30 or 2026-11>
	Source     string     // empty for the global and for group budgets
	Path       tasks.Path // empty for the global and for group budgets
	Group      string     // empty unless a group's
	Start, End time.Time  // [Start, End) in Config.TimeZone

	found int64 // ms of Redis's clock when it was found missing; 0 = unknown
}

// PeriodUnits is what settled calls used in a period.
type PeriodUnits struct {
	Period
	Spent int64 // sum of the units of the call rows in [Start, End), read after the budget was found missing
}

// MissingPeriods says that unit budgets are not in Redis: a new day or month
// has begun, or Redis lost them. Nothing is admitted until Seed has written
// what the call rows say (R13). It is not a refusal: seed and ask again.
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

func (g *Gates) missing(found int64, names []any) error {
	m := &MissingPeriods{}
	for _, n := range names {
		name, _ := n.(string)
		p, err := g.period(name)
		if err != nil {
			return fmt.Errorf("read admission reply: %w: %w", ErrUnavailable, err)
		}
		p.found = found
		m.Periods = append(m.Periods, p)
	}
	return m
}

// period reads a budget's name.
func (g *Gates) period(name string) (Period, error) {
	cut := strings.LastIndex(name, ":")
	if cut < 0 {
		return Period{}, fmt.Errorf("budget %q has no period", name)
	}
	p, scope, label := Period{Name: name}, name[:cut], name[cut+1:]
	if group, ok := strings.CutPrefix(scope, "group/"); ok {
		p.Group = group
	} else if source, path, ok := strings.Cut(scope, ":"); ok {
		p.Source, p.Path = source, tasks.Path(path)
	}
	if day, err := time.ParseInLocation(time.DateOnly, label, g.zone); err == nil {
		p.Start, p.End = day, day.AddDate(0, 0, 1)
		return p, nil
	}
	month, err := time.ParseInLocation("2006-01", label, g.zone)
	if err != nil {
		return Period{}, fmt.Errorf("read period of budget %q: %w", name, err)
	}
	p.Start = month.AddDate(0, 0, g.cfg.MonthAnchor-1)
	p.End = p.Start.AddDate(0, 1, 0)
	return p, nil
}

// Seed writes budgets that are missing; one that is there is left alone, so
// that of many workers the first wins. The script adds calls under way and
// those settled since the budget was found missing: they may be in the rows
// too, and then count twice rather than not at all. It returns how many were written.
func (g *Gates) Seed(ctx context.Context, periods ...PeriodUnits) (int, error) {
	if len(periods) == 0 {
		return 0, nil
	}
	args := []any{g.cfg.Prefix}
	for _, p := range periods {
		// A settle may come long after the period; 40 days outlast every call and month.
		args = append(args, p.Name, max(0, p.Spent), p.found, (time.Until(p.End) + 40*24*time.Hour).Milliseconds())
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	n, err := seedScript.Run(ctx, g.rdb, []string{g.cfg.Prefix + "g"}, args...).Int()
	if err != nil {
		return 0, fmt.Errorf("seed unit budgets: %w: %w", ErrUnavailable, err)
	}
	return n, nil
}
