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
	Source     string     // empty for global budgets and group budgets
	Path       tasks.Path // empty for global budgets and group budgets
	Group      string     // of a group budget; else empty
	Start, End time.Time  // [Start, End) in Config.TimeZone

	foundMissing int64 // when the budget was found missing, ms of Redis's clock; 0 = unknown
}

// days returns the calendar days before, at and after a moment.
func (g *Gates) days(now time.Time) [3]span {
	year, month, day := now.In(g.zone).Date()
	var out [3]span
	for i := range out {
		out[i] = g.span(time.Date(year, month, day+i-1, 0, 0, 0, 0, time.UTC), time.DateOnly, 0, 1)
	}
	return out
}

// months returns the budget months before, at and after a moment. A month begins on day Config.MonthAnchor and has the name
// of the calendar month in which it begins.
func (g *Gates) months(now time.Time) [3]span {
	year, month, day := now.In(g.zone).Date()
	if day < g.cfg.MonthAnchor {
		month--
	}
	var out [3]span
	for i := range out {
		out[i] = g.span(time.Date(year, month+time.Month(i-1), g.cfg.MonthAnchor, 0, 0, 0, 0, time.UTC), "2006-01", 1, 0)
	}
	return out
}

func (g *Gates) span(start time.Time, layout string, addMonths, addDays int) span {
	end := start.AddDate(0, addMonths, addDays)
	return span{Name: start.Format(layout), StartsAt: g.midnight(start).UnixMilli(), EndsAt: g.midnight(end).UnixMilli()}
}

// midnight returns the first moment of a date in Config.TimeZone. It is one o'clock where the clocks go forward at midnight.
func (g *Gates) midnight(date time.Time) time.Time {
	year, month, day := date.Date()
	t := time.Date(year, month, day, 0, 0, 0, 0, g.zone)
	if t.Day() != day {
		_, t = t.ZoneBounds()
	}
	return t
}

// period returns the period of a budget by its name. The period must be the current one, the one before or the one after.
func (g *Gates) period(name string, now time.Time) (Period, error) {
	cut := max(0, strings.LastIndex(name, ":"))
	p, scope := Period{Name: name}, name[:cut]
	if group, ok := strings.CutPrefix(scope, groupPrefix); ok {
		p.Group = group
	} else if source, path, ok := cutSource(scope); ok {
		p.Source, p.Path = source, path
	}
	days, months := g.days(now), g.months(now)
	for _, s := range append(days[:], months[:]...) {
		if ":"+s.Name == name[cut:] {
			p.Start, p.End = moment(s.StartsAt).In(g.zone), moment(s.EndsAt).In(g.zone)
			return p, nil
		}
	}
	return Period{}, fmt.Errorf("budget %q is not for a current period", name)
}
