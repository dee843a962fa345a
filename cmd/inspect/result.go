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
)

func newResults(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "results BATCH|KEY|EXTERNAL-ID",
		Short: "The results of a batch, a task or an external id",
		Example: `  inspect results b7k2qdx
  inspect results b7k2qdx --json > results.json
  inspect results recognize_3q…`,
		Args: cobra.ExactArgs(1),
		RunE: a.run(needsStore, func(ctx context.Context, s *session, args []string) error {
			list, err := s.Tasks.Results(ctx, args[0])
			return s.show(list, err, func() { s.printResults(list) })
		}),
	}
}

func (v view) printResults(list []ops.InputResult) {
	t := cli.Table{Head: []string{"INPUT", "STATE", "RESULT"}}
	counts := map[string]int{}
	for _, r := range list {
		counts[r.Word()]++
		result := r.Summary
		if r.Cached {
			result = strings.TrimSpace(result + " (already known, free)")
		}
		colour := cmp.Or(colours[r.Word()], colours[r.State])
		t.Add(cmp.Or(r.Name, r.Key), cli.Cell{Text: r.Word(), Colour: colour}, result)
	}
	v.Table(t)
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, text.Thousands(counts[state])+" "+state)
	}
	v.Line("%s: %s", text.Count(len(list), "input", "inputs"), strings.Join(parts, ", "))
}
