package main

import (
	"context"
	"strings"
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
				none := "no task yet"
				switch {
				case waiting && !f.chosen():
					none = "nothing waits"
				case waiting || f.chosen():
					none = "no task is like that"
				}
				return s.listTasks(ctx, filter, none)
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
				none := "nothing is archived"
				switch {
				case f.chosen():
					none = "nothing archived is like that"
				case replayable:
					none = "nothing archived can be replayed"
				}
				return s.listTasks(ctx, filter, none)
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
	Name       string        `json:"name"` // of the input; a URL without its query
	Path       tasks.Path    `json:"path"`
	Queue      string        `json:"queue"`
	Generation int64         `json:"generation"`
	State      string        `json:"state"` // waiting, or the verdict that finished it
	Verdict    tasks.Verdict `json:"verdict"`
	Outcome    tasks.Outcome `json:"outcome"`
	Reason     string        `json:"reason"`
	WaitsFor   string        `json:"waits_for"`   // as inspect why says it; "" = it does not wait, or Redis cannot be asked
	Starts     *time.Time    `json:"starts"`      // about; null = not known, or not by itself
	StartsWhen string        `json:"starts_when"` // what must happen first; "" = nothing
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

// listTasks prints tasks; none says what it means that there are none.
func (s *session) listTasks(ctx context.Context, filter store.TaskFilter, none string) error {
	found, err := s.store.Tasks(ctx, filter)
	if err != nil {
		return err
	}
	rows, err := s.taskRows(ctx, found)
	if err != nil {
		return err
	}
	if s.json {
		return s.writeJSON(rows)
	}
	if len(found) == 0 {
		s.line("%s", none)
		return nil
	}
	s.table(s.taskTable(found, rows))
	if len(found) == filter.Limit {
		s.line("there may be more: --limit %d", filter.Limit*10)
	}
	return nil
}

// taskRows are tasks with the names of their inputs and what they wait for.
func (s *session) taskRows(ctx context.Context, found []store.TaskRow) ([]taskRow, error) {
	names, err := s.inputNames(ctx, found)
	if err != nil {
		return nil, err
	}
	waits, err := s.waitReasons(ctx, found)
	if err != nil {
		return nil, err
	}
	rows := make([]taskRow, len(found))
	for i, t := range found {
		c := waits[t.Key]
		rows[i] = rowOf(t)
		rows[i].Name, rows[i].WaitsFor, rows[i].Starts, rows[i].StartsWhen = names[t.Key], c.Because, stamp(c.Starts), c.When
	}
	return rows, nil
}

func (s *session) taskTable(found []store.TaskRow, rows []taskRow) table {
	t := table{head: []string{"INPUT", "KEY", "QUEUE", "STATE", "OUTCOME", "CHANGED", "REASON"}}
	for i, r := range rows {
		if r.Final {
			r.State += ", final"
		}
		t.add(text(nameShown(r.Name)), text(shortKey(r.Key)), text(printable(r.Queue)), stateCell(r.State, found[i]), text(firstOf(string(r.Outcome), "–")),
			text(span(time.Since(found[i].UpdatedAt))+" ago"), text(short(s.reasonOf(r), 110)))
	}
	return t
}

// reasonOf is what a list says beside a task's outcome: what it waits for, or
// its reason without the outcome, which has its own column.
func (s *session) reasonOf(r taskRow) string {
	switch {
	case r.WaitsFor != "" && r.StartsWhen != "":
		return printable(r.WaitsFor) + "; starts " + r.StartsWhen
	case r.WaitsFor != "" && r.Starts != nil:
		return printable(r.WaitsFor) + "; starts " + s.until(*r.Starts)
	case r.WaitsFor != "":
		return printable(r.WaitsFor)
	}
	return printable(beyond(r.Reason, r.Outcome))
}

// beyond is what a reason says beyond the outcome that it begins with.
func beyond(reason string, outcome tasks.Outcome) string {
	return strings.TrimPrefix(strings.TrimPrefix(reason, string(outcome)), ": ")
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
