package main

import (
	"cmp"
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
		Short: "List tasks and what they wait for, the least recently changed first",
		Example: `  inspect tasks --waiting
  inspect tasks --outcome no_match --since 24h --limit 500 --json
  inspect tasks --path enterprise --verdict retry`,
		Args: cobra.NoArgs,
		RunE: a.run(needsStore|wantsRedis, listTasks(&f, func(filter *store.TaskFilter) string {
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
		})),
	}
	f.add(cmd, 50)
	cmd.Flags().StringVar(&f.verdict, "verdict", "", "only done, retry, snooze, archive or hold")
	cmd.Flags().BoolVar(&waiting, "waiting", false, "only unfinished tasks")
	return cmd
}

func newArchive(a *app) *cobra.Command {
	var f filterFlags
	var replayable bool
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "List archived tasks with their reasons",
		Long:  `A task marked final failed permanently: only enqueue --force runs it again. The others can be replayed.`,
		Example: `  inspect archive --outcome quota
  inspect archive --replayable --since 7d
  inspect archive --text "wrong base url" --json`,
		Args: cobra.NoArgs,
		RunE: a.run(needsStore, listTasks(&f, func(filter *store.TaskFilter) string {
			yes := true
			filter.Verdict, filter.Finished, filter.Replayable = tasks.Archive, &yes, replayable
			switch {
			case f.chosen():
				return "no matching archived tasks"
			case replayable:
				return "no archived task can be replayed"
			}
			return "no archived tasks"
		})),
	}
	f.add(cmd, 50)
	cmd.Flags().BoolVar(&replayable, "replayable", false, "only tasks that inspect replay would run again")
	return cmd
}

// listTasks prints tasks. narrow changes the filter, and returns the line to print when no task is found.
func listTasks(f *filterFlags, narrow func(*store.TaskFilter) string) action {
	return func(ctx context.Context, s *session, _ []string) error {
		filter, err := f.filter(s.Times)
		if err != nil {
			return err
		}
		none := narrow(&filter)
		list, err := s.Tasks.List(ctx, filter)
		return s.show(list, err, func() {
			if len(list) == 0 {
				s.Line("%s", none)
				return
			}
			s.printTasks(list)
			if len(list) == filter.Limit {
				s.Line("there may be more: --limit %d", filter.Limit*10)
			}
		})
	}
}

func (v view) printTasks(list []ops.Task) {
	t := cli.Table{Head: []string{"INPUT", "KEY", "QUEUE", "STATE", "OUTCOME", "CHANGED", "REASON"}}
	for _, r := range list {
		state := coloured(r.State, r.State)
		if r.Final {
			state.Text += ", final"
		}
		t.Add(nameText(r.Name), ops.ShortKey(r.Key), r.Queue, state, or(string(r.Outcome)),
			text.Span(v.Now.Sub(r.UpdatedAt))+" ago", text.Short(v.reason(r), 110))
	}
	v.Table(t)
}

// reason returns what a task waits for, or its reason without the outcome, which has a column of its own.
func (v view) reason(r ops.Task) string {
	switch {
	case r.WaitsFor == "":
		return withoutOutcome(r.Reason, r.Outcome)
	case r.StartsWhen != "":
		return r.WaitsFor + "; starts " + r.StartsWhen
	case r.Starts != nil:
		return r.WaitsFor + "; starts " + v.Until(*r.Starts)
	}
	return r.WaitsFor
}

// withoutOutcome removes the outcome that a reason begins with.
func withoutOutcome(reason string, outcome tasks.Outcome) string {
	return strings.TrimPrefix(strings.TrimPrefix(reason, string(outcome)), ": ")
}

// nameWidth is the most letters that a list shows of a name.
const nameWidth = 48

// nameText returns a name for a list: the last part of a file name, or the end of a URL.
func nameText(name string) string {
	if !strings.Contains(name, "://") {
		name = path.Base(strings.ReplaceAll(cmp.Or(name, "–"), `\`, "/"))
	}
	if r := []rune(name); len(r) > nameWidth {
		return "…" + string(r[len(r)-nameWidth+1:])
	}
	return name
}
