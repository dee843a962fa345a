package admission

import (
	"fmt"
	"strings"
	"time"

	"reprise/tasks"
)

// Period is one unit budget and the time it covers.
type Period struct {
	Name       string     // of the budget in Redis: <scope>:<2026-11-30 or 2026-11>
	Source     string     // empty for the global budgets and those of groups
	Path       tasks.Path // empty for the global budgets and those of groups
	Group      string     // empty unless the budget is a group's
	Start, End time.Time  // [Start, End) in Config.TimeZone

	foundMissing int64 // ms of Redis's clock when it was found missing; 0 = unknown
}

// span is a day or a budget month as the scripts get it. Redis has no time zones:
// it gets the periods around the worker's time, and its own clock decides which of
// them is current.
type span struct {
	Name     string `json:"name"` // 2026-11-30 or 2026-11
	StartsAt int64  `json:"starts_at"`
	EndsAt   int64  `json:"ends_at"`
}

// days are the calendar days before, at and after a moment.
func (g *Gates) days(now time.Time) [3]span {
	year, month, day := now.In(g.zone).Date()
	var out [3]span
	for i := range out {
		out[i] = g.span(year, month, day+i-1, time.DateOnly, 0, 1)
	}
	return out
}

// months are the budget months before, at and after a moment. A month begins at
// Config.MonthAnchor and has the name of the calendar month it begins in.
func (g *Gates) months(now time.Time) [3]span {
	year, month, day := now.In(g.zone).Date()
	if day < g.cfg.MonthAnchor {
		month--
	}
	var out [3]span
	for i := range out {
		out[i] = g.span(year, month+time.Month(i-1), g.cfg.MonthAnchor, monthLayout, 1, 0)
	}
	return out
}

const monthLayout = "2006-01"

func (g *Gates) span(year int, month time.Month, day int, layout string, addMonths, addDays int) span {
	start := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	end := start.AddDate(0, addMonths, addDays)
	return span{Name: start.Format(layout), StartsAt: g.midnight(start).UnixMilli(), EndsAt: g.midnight(end).UnixMilli()}
}

// midnight is the first moment of a date in the zone of the configuration. Where
// the clocks are put forward at midnight that is one o'clock.
func (g *Gates) midnight(date time.Time) time.Time {
	year, month, day := date.Date()
	t := time.Date(year, month, day, 0, 0, 0, 0, g.zone)
	if t.Day() != day {
		_, t = t.ZoneBounds()
	}
	return t
}

// period reads the name of a budget.
func (g *Gates) period(name string) (Period, error) {
	cut := max(0, strings.LastIndex(name, ":"))
	p, scope, label := Period{Name: name}, name[:cut], strings.TrimPrefix(name[cut:], ":")
	if group, ok := strings.CutPrefix(scope, groupPrefix); ok {
		p.Group = group
	} else if source, path, ok := strings.Cut(scope, ":"); ok {
		p.Source, p.Path = source, tasks.Path(path)
	}
	if day, err := time.Parse(time.DateOnly, label); err == nil {
		p.Start, p.End = g.midnight(day), g.midnight(day.AddDate(0, 0, 1))
		return p, nil
	}
	month, err := time.Parse(monthLayout, label)
	if err != nil {
		return Period{}, fmt.Errorf("read the period of budget %q: %w", name, err)
	}
	month = month.AddDate(0, 0, g.cfg.MonthAnchor-1)
	p.Start, p.End = g.midnight(month), g.midnight(month.AddDate(0, 1, 0))
	return p, nil
}
