package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/admission"
)

func newLimits(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "The limits in force and their revision, and changing them for all workers at once (costs nothing)",
		Example: `  inspect limits
  inspect limits set main/recognize.concurrency=20
  inspect limits set global.requests_per_minute=3000 group/archive.ceiling=70%`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.with(cmd.Context(), needsRedis, listLimits) },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "set SCOPE.LIMIT=VALUE…",
		Short: "Change limits for every worker at once, without a restart (costs nothing)",
		Long: `SCOPE is SOURCE/PATH, global, group/NAME or tuning; off and 0 mean no limit. All changes are one revision, or none is made.
Settings files only seed limits that Redis does not have yet: a worker that restarts keeps what is set here.`,
		Example: `  inspect limits set main/recognize.concurrency=20 main/recognize.requests_per_minute=3000
  inspect limits set global.units_per_day=50,000
  inspect limits set tuning.breaker_cooldown=10s --by alice`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				return s.setLimits(ctx, args)
			})
		},
	})
	return cmd
}

// limitsReport is --json of limits. 0 = off.
type limitsReport struct {
	Revision int64      `json:"revision"` // 0 = no worker has written limits yet
	By       string     `json:"by"`
	At       *time.Time `json:"at"`
	Limits   []limitRow `json:"limits"`
}

// limitRow is a limit: a number, whose unit its name says where it has one. A
// share is a fraction; a group's source is a name, "" for any.
type limitRow struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func rowOfLimit(l admission.Limit) limitRow {
	row := limitRow{Scope: scopeShown(l.Scope), Name: l.Name, Value: l.Value}
	n, err := strconv.ParseInt(l.Value, 10, 64)
	switch {
	case l.Name == "source" || err != nil:
	case slices.Contains(tuneTimes, l.Name):
		row.Name, row.Value = l.Name+"_ms", n
	case l.Name == "ceiling" || l.Name == "slot_share":
		row.Value = float64(n) / 1000
	default:
		row.Value = n
	}
	return row
}

func reportLimits(limits []admission.Limit, rev admission.Revision) limitsReport {
	r := limitsReport{Revision: rev.Number, By: rev.By, At: stamp(rev.At), Limits: []limitRow{}}
	for _, l := range limits {
		r.Limits = append(r.Limits, rowOfLimit(l))
	}
	return r
}

func listLimits(ctx context.Context, s *session) error {
	g, err := s.gates(ctx)
	if err != nil {
		return err
	}
	if s.json {
		return s.writeJSON(reportLimits(g.limits, g.revision))
	}
	if g.revision.Number == 0 {
		s.line("no limits: no worker has written any to this Redis yet")
		return nil
	}
	s.line("revision %d by %s, %s", g.revision.Number, words(g.revision.By), s.since(g.revision.At))
	s.table(limitTable(g.limits))
	if groups := groupTable(g.limits); len(groups.rows) > 0 {
		s.line("")
		s.table(groups)
	}
	s.line("")
	s.table(tuneTable(g.limits))
	return nil
}

// valueOf is the limit as people write it, "" when it is not in force.
func valueOf(limits []admission.Limit, scope, name string) string {
	i := slices.IndexFunc(limits, func(l admission.Limit) bool { return l.Scope == scope && l.Name == name })
	if i < 0 {
		return ""
	}
	return shown(limits[i])
}

func scopesIn(limits []admission.Limit, keep func(scope string) bool) []string {
	var out []string
	for _, l := range limits {
		if keep(l.Scope) {
			out = append(out, l.Scope)
		}
	}
	return distinct(out)
}

// unset is what holds when a limit was never written.
func unset(name string) string {
	switch name {
	case "weight":
		return "1"
	case "source":
		return "any"
	}
	return "off"
}

func limitTable(limits []admission.Limit) table {
	t := table{head: []string{"SCOPE", "CONCURRENCY", "REQUESTS/MIN", "BURST", "UNITS/MIN", "BURST", "UNITS/DAY", "UNITS/MONTH"}}
	scopes := scopesIn(limits, func(scope string) bool {
		return scope == admission.ScopeGlobal || strings.Contains(scope, ":")
	})
	for _, scope := range scopes {
		row := []cell{text(scopeShown(scope))}
		for _, name := range limitNames {
			row = append(row, right(firstOf(valueOf(limits, scope, name), "off")))
		}
		t.add(row...)
	}
	return t
}

func tuneTable(limits []admission.Limit) table {
	t := table{head: []string{"TUNE", "VALUE", "MEANING"}}
	meaning := map[string]string{
		"aimd": "learn concurrency and rate from throttles", "aimd_start": "calls in flight to begin with", "aimd_floor": "never fewer",
		"aimd_max": "never more, where no concurrency is set", "breaker_failures": "consecutive failures that open the breaker",
		"breaker_window": "a success this recent is evidence of health", "breaker_cooldown": "until the first probe", "breaker_cooldown_max": "longest wait between probes",
		"breaker_auth_failures": "authentication failures in a row that halt", "breaker_not_found": "404s in a row that halt", "breaker_probe_quota": "between probes of quota and subscription",
		"breaker_probe_blocked": "between probes of a block that may pass",
	}
	for _, name := range tuneNames {
		if value := valueOf(limits, admission.ScopeTuning, name); value != "" {
			t.add(text("tuning."+name), right(value), text(meaning[name]))
		}
	}
	return t
}

func (s *session) setLimits(ctx context.Context, args []string) error {
	who := s.by()
	g, err := s.seeded(ctx)
	if err != nil {
		return err
	}
	var changes []admission.Limit
	var bad []error
	for _, arg := range args {
		l, err := parseLimit(arg, g.sources)
		bad = append(bad, err)
		changes = append(changes, l)
	}
	if err := errors.Join(bad...); err != nil {
		return &failure{exitUsage, err}
	}
	return s.change(ctx, g, changes, who)
}

// change sets limits and says what was and what is.
func (s *session) change(ctx context.Context, g *gates, changes []admission.Limit, who string) error {
	for _, c := range changes {
		if c.Name == "source" && c.Value != "" && !slices.Contains(g.sources, c.Value) {
			return usage("no source %s%s", printable(c.Value), didYouMean(c.Value, g.sources))
		}
	}
	before := g.limits
	rev, err := g.SetLimits(ctx, changes, who)
	if err != nil {
		return err
	}
	after, rev2, err := g.LimitsInForce(ctx)
	if err != nil {
		return err
	}
	if rev2.Number != 0 {
		rev = rev2
	}
	if s.json {
		return s.writeJSON(reportLimits(after, rev))
	}
	for _, c := range changes {
		old := firstOf(valueOf(before, c.Scope, c.Name), unset(c.Name))
		s.line("%s.%s %s → %s", scopeShown(c.Scope), c.Name, old, firstOf(shown(c), unset(c.Name)))
	}
	s.line("revision %d by %s", rev.Number, words(rev.By))
	return nil
}
