package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/ops"
)

func newLimits(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "The limits in force and their revision; set changes them for all workers at once",
		Example: `  inspect limits
  inspect limits set main/recognize.concurrency=20
  inspect limits set global.requests_per_minute=3000 group/archive.ceiling=70%`,
		Args: cobra.NoArgs,
		RunE: a.run(needsRedis, func(ctx context.Context, s *session, _ []string) error {
			r, err := s.Limits.List(ctx)
			return s.show(r, err, func() { s.printLimits(r) })
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "set SCOPE.LIMIT=VALUE…",
		Short: "Change limits for every worker at once, without a restart",
		Long: `SCOPE is SOURCE/PATH, global, group/NAME or tuning; off and 0 mean no limit. All changes are one revision, or none is made.
Settings files only seed limits that Redis does not have yet: a worker that restarts keeps what is set here.`,
		Example: `  inspect limits set main/recognize.concurrency=20 main/recognize.requests_per_minute=3000
  inspect limits set global.units_per_day=50,000
  inspect limits set tuning.breaker_cooldown=10s --by alice`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.run(needsRedis, func(ctx context.Context, s *session, args []string) error {
			return s.changed(s.Limits.Set(ctx, args, s.by()))
		}),
	})
	return cmd
}

func (v view) printLimits(r ops.LimitsReport) {
	if r.Revision == 0 {
		v.Line("no limits: no worker has written any to this Redis yet")
		return
	}
	v.Line("revision %d by %s, %s", r.Revision, r.By, v.Since(at(r.At)))
	rates := cli.Table{Head: []string{"SCOPE", "CONCURRENCY", "REQUESTS/MIN", "BURST", "UNITS/MIN", "BURST", "UNITS/DAY", "UNITS/MONTH"}}
	for _, scope := range r.Scopes("") {
		if scope == "tuning" || strings.HasPrefix(scope, "group/") {
			continue
		}
		row := []any{scope}
		for _, name := range ops.RateLimits {
			row = append(row, cli.Number(r.Text(scope, name)))
		}
		rates.Add(row...)
	}
	tuning := cli.Table{Head: []string{"TUNING", "VALUE", "MEANING"}}
	for _, name := range ops.TuningLimits() {
		for _, l := range r.Limits {
			if l.Scope == "tuning" && l.Name == name {
				tuning.Add("tuning."+name, cli.Number(l.Text), l.Meaning)
			}
		}
	}
	v.Table(rates)
	for _, t := range []cli.Table{groupTable(r.Scopes("group/"), r), tuning} {
		if !t.Empty() {
			v.Line("")
			v.Table(t)
		}
	}
}

// changed prints the limits after a change.
func (s *session) changed(r ops.LimitsChange, err error) error {
	return s.show(r, err, func() {
		if r.NewGroup != "" {
			s.Line("new group %s: its queues are %s", r.NewGroup, strings.Join(r.Queues, ", "))
		}
		for _, c := range r.Changes {
			s.Line("%s.%s %s → %s", c.Scope, c.Name, c.Old, c.New)
		}
		s.Line("revision %d by %s", r.Revision, r.By)
	})
}

func newGroup(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Customers and purposes: weight, ceiling, budgets, pinned source",
		Example: `  inspect group list
  inspect group set archive ceiling=70%
  inspect group set ugc weight=5 units_per_day=20,000`,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "The groups in force, with the tasks that wait in their queues",
		Example: `  inspect group list
  inspect group list --json
  inspect queues                # the same queues one by one`,
		Args: cobra.NoArgs,
		RunE: a.run(needsRedis, func(ctx context.Context, s *session, _ []string) error {
			r, err := s.Limits.Groups(ctx)
			return s.show(r.Groups, err, func() { s.printGroups(r) })
		}),
	}, &cobra.Command{
		Use:   "set NAME KEY=VALUE…",
		Short: "Create or change a group for all workers at once",
		Long: `Keys: weight (of its queues against others of the path), ceiling (the part of each rate and permit limit it may use),
slot_share (part of a worker's slots), units_per_day, units_per_month, source (pinned account, or none).`,
		Example: `  inspect group set archive ceiling=70%
  inspect group set ugc weight=5 units_per_day=20,000
  inspect group set labels source=spare slot_share=25%`,
		Args: cobra.MinimumNArgs(2),
		RunE: a.run(needsRedis, func(ctx context.Context, s *session, args []string) error {
			return s.changed(s.Limits.SetGroup(ctx, args[0], args[1:], s.by()))
		}),
	})
	return cmd
}

// groupTable has one row per group.
func groupTable(scopes []string, r ops.LimitsReport) cli.Table {
	t := cli.Table{Head: []string{"GROUP", "WEIGHT", "CEILING", "SLOT SHARE", "UNITS/DAY", "UNITS/MONTH", "SOURCE"}}
	for _, scope := range scopes {
		t.Add(groupRow(scope, r)...)
	}
	return t
}

func groupRow(scope string, r ops.LimitsReport) []any {
	row := []any{strings.TrimPrefix(scope, "group/")}
	for _, name := range ops.GroupLimits {
		row = append(row, cli.Cell{Text: r.Text(scope, name), Right: name != "source"})
	}
	return row
}

func (v view) printGroups(r ops.GroupsReport) {
	if len(r.Groups) == 0 {
		v.Line("no groups")
		return
	}
	t := groupTable(nil, r.Limits)
	t.Head = append(t.Head, "WAITING", "RUNNING")
	for _, g := range r.Groups {
		t.Add(append(groupRow("group/"+g.Name, r.Limits), g.Waiting, g.Running)...)
	}
	v.Table(t)
}
