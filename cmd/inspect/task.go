package main

import (
	"context"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/ops"
	"reprise/store"
	"reprise/tasks"
)

func newTasks(a *app) *cobra.Command {
	var f filterFlags
	var waiting bool
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "List tasks and what they wait for, those unchanged for longest first",
		Example: `  inspect tasks --waiting
  inspect tasks --outcome no_match --since 24h --limit 500 --json
  inspect tasks --path enterprise --verdict retry`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listTasks(cmd.Context(), needsStore|wantsRedis, f, func(filter *store.TaskFilter) string {
				if no := false; waiting {
					filter.Finished = &no
				}
				switch {
				case waiting && !f.chosen():
					return "no task waits"
				case waiting || f.chosen():
					return "no matching tasks"
				}
				return "no tasks yet"
			})
		},
	}
	f.add(cmd, 50)
	cmd.Flags().StringVar(&f.verdict, "verdict", "", "only done, retry, snooze, archive or hold")
	cmd.Flags().BoolVar(&waiting, "waiting", false, "only unfinished ones")
	return cmd
}

func newArchive(a *app) *cobra.Command {
	var f filterFlags
	var replayable bool
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "List archived tasks with their reasons",
		Long:  `A task archived for good is a tombstone: only enqueue --force pays for it again. The others can be replayed.`,
		Example: `  inspect archive --outcome quota
  inspect archive --replayable --since 7d
  inspect archive --text "wrong base url" --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listTasks(cmd.Context(), needsStore, f, func(filter *store.TaskFilter) string {
				yes := true
				filter.Verdict, filter.Finished, filter.Replayable = tasks.Archive, &yes, replayable
				switch {
				case f.chosen():
					return "no matching archived tasks"
				case replayable:
					return "no archived task can be replayed"
				}
				return "no archived tasks"
			})
		},
	}
	f.add(cmd, 50)
	cmd.Flags().BoolVar(&replayable, "replayable", false, "only tasks that inspect replay would run again")
	return cmd
}

// listTasks prints tasks. narrow adds to the filter, and returns what to say when no task is found.
func (a *app) listTasks(ctx context.Context, n need, f filterFlags, narrow func(*store.TaskFilter) string) error {
	return a.with(ctx, n, func(ctx context.Context, s *session) error {
		filter, err := f.filter(s.Times)
		if err != nil {
			return err
		}
		none := narrow(&filter)
		list, err := s.Tasks.List(ctx, filter)
		if err != nil {
			return err
		}
		return s.show(list, func() error {
			if len(list) == 0 {
				s.Line("%s", none)
				return nil
			}
			if err := s.Table(s.taskTable(list)); err != nil {
				return err
			}
			if len(list) == filter.Limit {
				s.Line("there may be more: --limit %d", filter.Limit*10)
			}
			return nil
		})
	})
}

func (s *session) taskTable(list []ops.Task) cli.Table {
	t := cli.Table{Head: []string{"INPUT", "KEY", "QUEUE", "STATE", "OUTCOME", "CHANGED", "REASON"}}
	for _, r := range list {
		state, colour := r.State, cli.Red
		switch {
		case r.FinishedAt == nil:
			colour = ""
		case r.Verdict == tasks.Done:
			colour = cli.Green
		}
		if r.Final {
			state += ", final"
		}
		t.Add(cli.Text(nameText(r.Name)), cli.Text(ops.ShortKey(r.Key)), cli.Text(text.Printable(r.Queue)), coloured(state, colour), cli.Text(or(string(r.Outcome))),
			cli.Text(text.Span(s.Now.Sub(at(r.UpdatedAt)))+" ago"), cli.Text(text.Short(s.reason(r), 110)))
	}
	return t
}

// reason is what a task waits for, or its reason without the outcome, which has its own column.
func (s *session) reason(r ops.Task) string {
	waits := text.Printable(r.WaitsFor)
	switch {
	case waits == "":
		return text.Printable(withoutOutcome(r.Reason, r.Outcome))
	case r.StartsWhen != "":
		return waits + "; starts " + r.StartsWhen
	case r.Starts != nil:
		return waits + "; starts " + s.Until(*r.Starts)
	}
	return waits
}

// withoutOutcome is a reason without the outcome that it begins with.
func withoutOutcome(reason string, outcome tasks.Outcome) string {
	return strings.TrimPrefix(strings.TrimPrefix(reason, string(outcome)), ": ")
}

// nameWidth is the most that a list shows of a name.
const nameWidth = 48

// nameText is a name in a list: the last part of a file, the end of a URL.
func nameText(name string) string {
	switch {
	case name == "":
		return "–"
	case !strings.Contains(name, "://"):
		name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	}
	if r := []rune(text.Printable(name)); len(r) > nameWidth {
		return "…" + string(r[len(r)-nameWidth+1:])
	}
	return text.Printable(name)
}
