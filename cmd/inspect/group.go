package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/admission"
	"reprise/tasks"
)

func newGroup(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Customers and purposes: weight, ceiling, budgets, pinned source (costs nothing)",
		Example: `  inspect group list
  inspect group set archive ceiling=70%
  inspect group set ugc weight=5 units_per_day=20,000`,
		Args: cobra.NoArgs,
		RunE: helpOnly,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "The groups in force, with what waits in their queues (costs nothing)",
		Example: `  inspect group list
  inspect group list --json
  inspect queues                # the same queues one by one`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.with(cmd.Context(), needsRedis, listGroups) },
	}, &cobra.Command{
		Use:   "set NAME KEY=VALUE…",
		Short: "Make or change a group for all workers at once (costs nothing)",
		Long: `Keys: weight (of its queues against others of the path), ceiling (the part of each rate and permit limit it may use),
slot_share (part of a worker's slots), units_per_day, units_per_month, source (pinned account, or none).`,
		Example: `  inspect group set archive ceiling=70%
  inspect group set ugc weight=5 units_per_day=20,000
  inspect group set labels source=spare slot_share=25%`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				return s.setGroup(ctx, args[0], args[1:])
			})
		},
	})
	return cmd
}

// groupRow is a group for --json. Limits are those of limits --json.
type groupRow struct {
	Name    string         `json:"name"`
	Limits  map[string]any `json:"limits"`
	Waiting int64          `json:"waiting"`
	Running int64          `json:"running"`
}

func listGroups(ctx context.Context, s *session) error {
	g, err := s.gates(ctx)
	if err != nil {
		return err
	}
	rows := []groupRow{}
	t := table{head: append(groupTable(nil).head, "WAITING", "RUNNING")}
	for i, cells := range groupTable(g.limits).rows {
		row := groupRow{Name: g.groups[i], Limits: map[string]any{}}
		for _, l := range g.limits {
			if l.Scope == admission.ScopeOfGroup(row.Name) {
				limit := rowOfLimit(l)
				row.Limits[limit.Name] = limit.Value
			}
		}
		for _, path := range tasks.Paths {
			q, err := s.stat(ctx, path.Queue(row.Name))
			if err != nil {
				return err
			}
			row.Waiting += q.waiting()
			row.Running += q.Active
		}
		rows = append(rows, row)
		t.add(append(cells, number(row.Waiting), number(row.Running))...)
	}
	if s.json {
		return s.writeJSON(rows)
	}
	if len(rows) == 0 {
		s.line("no groups")
		return nil
	}
	s.table(t)
	return nil
}

// groupTable has a row per group in force, by name.
func groupTable(limits []admission.Limit) table {
	t := table{head: []string{"GROUP", "WEIGHT", "CEILING", "SLOT SHARE", "UNITS/DAY", "UNITS/MONTH", "SOURCE"}}
	prefix := admission.ScopeOfGroup("")
	for _, scope := range scopesIn(limits, func(scope string) bool { return strings.HasPrefix(scope, prefix) }) {
		value := func(name string) string { return firstOf(valueOf(limits, scope, name), unset(name)) }
		t.add(text(strings.TrimPrefix(scope, prefix)), right(value("weight")), right(value("ceiling")), right(value("slot_share")),
			right(value("units_per_day")), right(value("units_per_month")), text(value("source")))
	}
	return t
}

func (s *session) setGroup(ctx context.Context, name string, pairs []string) error {
	who := s.by()
	g, err := s.seeded(ctx)
	if err != nil {
		return err
	}
	var changes []admission.Limit
	var bad []error
	for _, p := range pairs {
		l, err := parseLimit("group/"+name+"."+p, g.sources)
		bad = append(bad, err)
		changes = append(changes, l)
	}
	if err := errors.Join(bad...); err != nil {
		return &failure{exitUsage, err}
	}
	if !slices.Contains(g.groups, name) && !s.json {
		s.line("new group %s: its queues are %s", name, strings.Join(queuesOf(name), ", "))
	}
	return s.change(ctx, g, changes, who)
}

func queuesOf(group string) []string {
	var out []string
	for _, p := range tasks.Paths {
		out = append(out, p.Queue(group))
	}
	return out
}
