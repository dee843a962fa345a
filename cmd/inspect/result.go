package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/ops"
	"reprise/tasks"
)

func newResults(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "results BATCH|KEY|EXTERNAL-ID",
		Short: "The results of a batch, a task or an external id",
		Example: `  inspect results b7k2qdx
  inspect results b7k2qdx --json > results.json
  inspect results recognize_3q…`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), needsStore, func(ctx context.Context, s *session) error {
				list, err := s.Tasks.Results(ctx, args[0])
				if err != nil {
					return err
				}
				return s.show(list, func() error { return s.printResults(list) })
			})
		},
	}
}

func (s *session) printResults(list []ops.InputResult) error {
	t := cli.Table{Head: []string{"INPUT", "STATE", "RESULT"}}
	counts := map[string]int{}
	for _, r := range list {
		counts[r.Word()]++
		what := r.Summary
		if r.Cached {
			what = strings.TrimSpace(what + " (already known, free)")
		}
		t.Add(cli.Text(text.Printable(cmp.Or(r.Name, r.Key))), coloured(r.Word(), resultColour(r)), cli.Text(text.Printable(what)))
	}
	if err := s.Table(t); err != nil {
		return err
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, text.Thousands(counts[state])+" "+state)
	}
	s.Line("%s: %s", text.Count(len(list), "input", "inputs"), strings.Join(parts, ", "))
	return nil
}

func resultColour(r ops.InputResult) cli.Colour {
	switch {
	case r.FinishedAt == nil:
		return ""
	case r.Outcome == tasks.NoMatch:
		return cli.Yellow
	case r.State == string(tasks.Done):
		return cli.Green
	}
	return cli.Red
}
