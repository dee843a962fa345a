package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"reprise/store"
	"reprise/tasks"
)

func newTasks(a *app) *cobra.Command {
	var f filterFlags
	var waiting bool
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "List tasks and where they stand, the longest unchanged first (costs nothing)",
		Example: `  inspect tasks --waiting
  inspect tasks --outcome no_match --since 24h --limit 500 --json
  inspect tasks --path enterprise --verdict retry`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), needsStore, func(ctx context.Context, s *session) error {
				filter, err := f.filter(s.zone)
				if err != nil {
					return err
				}
				if waiting {
					no := false
					filter.Finished = &no
				}
				return s.listTasks(ctx, filter)
			})
		},
	}
	f.add(cmd, true, 50)
	cmd.Flags().BoolVar(&waiting, "waiting", false, "only unfinished ones")
	return cmd
}

func newArchive(a *app) *cobra.Command {
	var f filterFlags
	var replayable bool
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "List what was given up, with its reason (costs nothing)",
		Long:  `A task archived for good is a tombstone: only enqueue --force pays for it again. The others can be replayed.`,
		Example: `  inspect archive --outcome quota
  inspect archive --replayable --since 7d
  inspect archive --text "wrong base url" --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), needsStore, func(ctx context.Context, s *session) error {
				filter, err := f.filter(s.zone)
				if err != nil {
					return err
				}
				yes := true
				filter.Verdict, filter.Finished, filter.Replayable = tasks.Archive, &yes, replayable
				return s.listTasks(ctx, filter)
			})
		},
	}
	f.add(cmd, false, 50)
	cmd.Flags().BoolVar(&replayable, "replayable", false, "only what inspect replay would run again")
	return cmd
}

// taskRow is a task for --json.
type taskRow struct {
	Key        string        `json:"key"`
	Path       tasks.Path    `json:"path"`
	Queue      string        `json:"queue"`
	Generation int64         `json:"generation"`
	State      string        `json:"state"` // waiting, or the verdict that finished it
	Verdict    tasks.Verdict `json:"verdict"`
	Outcome    tasks.Outcome `json:"outcome"`
	Reason     string        `json:"reason"`
	Final      bool          `json:"final"`
	CreatedAt  *time.Time    `json:"created_at"`
	UpdatedAt  *time.Time    `json:"updated_at"`
	FinishedAt *time.Time    `json:"finished_at"`
}

func rowOf(t store.TaskRow) taskRow {
	state := string(t.Verdict)
	if !t.Finished {
		state = "waiting"
	}
	return taskRow{
		Key: t.Key, Path: t.Path, Queue: t.Queue, Generation: t.Generation, State: state, Verdict: t.Verdict, Outcome: t.Outcome,
		Reason: t.Reason, Final: t.Final, CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt), FinishedAt: stamp(t.FinishedAt),
	}
}

func (s *session) listTasks(ctx context.Context, filter store.TaskFilter) error {
	found, err := s.store.Tasks(ctx, filter)
	if err != nil {
		return err
	}
	if s.json {
		rows := []taskRow{}
		for _, t := range found {
			rows = append(rows, rowOf(t))
		}
		return s.writeJSON(rows)
	}
	if len(found) == 0 {
		s.line("no such task")
		return nil
	}
	s.table(s.taskTable(found))
	if len(found) == filter.Limit {
		s.line("there may be more: --limit %d", filter.Limit*10)
	}
	return nil
}

func (s *session) taskTable(found []store.TaskRow) table {
	t := table{head: []string{"KEY", "QUEUE", "STATE", "OUTCOME", "CHANGED", "REASON"}}
	for _, row := range found {
		r := rowOf(row)
		if r.Final {
			r.State += ", final"
		}
		t.add(text(r.Key), text(printable(r.Queue)), stateCell(r.State, row), text(string(r.Outcome)),
			text(span(time.Since(row.UpdatedAt))+" ago"), text(short(printable(row.Reason), 100)))
	}
	return t
}

func stateCell(state string, t store.TaskRow) cell {
	switch {
	case !t.Finished:
		return text(state)
	case t.Verdict == tasks.Done:
		return tinted(state, green)
	}
	return tinted(state, red)
}
