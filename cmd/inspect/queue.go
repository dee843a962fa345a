package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/admission"
)

func newQueues(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "queues",
		Short: "What waits in each queue, and why a queue is paused (costs nothing)",
		Example: `  inspect queues
  inspect queues --json
  inspect queues --redis redis://queue.internal:6379`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.with(cmd.Context(), needsRedis, listQueues) },
	}
}

// queueRow is a queue for --json.
type queueRow struct {
	Queue     string      `json:"queue"`
	Pending   int64       `json:"pending"`
	Active    int64       `json:"active"`
	Scheduled int64       `json:"scheduled"`
	Retry     int64       `json:"retry"`
	Archived  int64       `json:"archived"`
	Completed int64       `json:"completed"`
	Oldest    *time.Time  `json:"oldest_pending"` // null = nothing is pending
	Paused    bool        `json:"paused"`         // asynq's flag
	Reasons   []reasonRow `json:"reasons"`
	Override  *time.Time  `json:"override_until,omitempty"` // automatic reasons are kept out until then

	state admission.PauseState
	stat  queueStat
}

type reasonRow struct {
	Name     string     `json:"name"`
	Since    *time.Time `json:"since"`
	Until    *time.Time `json:"until"` // null = it does not end by itself
	By       string     `json:"by"`
	Evidence string     `json:"evidence"`
}

func (s *session) queueRow(ctx context.Context, queue string) (queueRow, error) {
	q, err := s.stat(ctx, queue)
	if err != nil {
		return queueRow{}, err
	}
	state, err := s.pauseState(ctx, queue)
	if err != nil {
		return queueRow{}, err
	}
	row := queueRow{
		Queue: queue, Pending: q.Pending, Active: q.Active, Scheduled: q.Scheduled, Retry: q.Retry, Archived: q.Archived,
		Completed: q.Completed, Oldest: stamp(q.OldestPending), Paused: q.Paused, Reasons: reasonRows(state), state: state, stat: q,
	}
	if state.Override.After(time.Now()) {
		row.Override = stamp(state.Override)
	}
	return row, nil
}

func reasonRows(state admission.PauseState) []reasonRow {
	out := []reasonRow{}
	for _, r := range state.Reasons {
		out = append(out, reasonRow{Name: r.Name, Since: stamp(r.At), Until: stamp(r.Until), By: r.By, Evidence: r.Evidence})
	}
	return out
}

func listQueues(ctx context.Context, s *session) error {
	g, err := s.gates(ctx)
	if err != nil {
		return err
	}
	names, err := s.queues(g)
	if err != nil {
		return err
	}
	rows := []queueRow{}
	for _, name := range names {
		row, err := s.queueRow(ctx, name)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if s.json {
		return s.writeJSON(rows)
	}
	s.table(s.queueTable(rows))
	return nil
}

func (s *session) queueTable(rows []queueRow) table {
	t := table{head: []string{"QUEUE", "PENDING", "ACTIVE", "SCHEDULED", "RETRY", "ARCHIVED", "COMPLETED", "OLDEST", "STATE"}}
	for _, r := range rows {
		oldest := "–"
		if !r.stat.OldestPending.IsZero() {
			oldest = span(time.Since(r.stat.OldestPending))
		}
		state := tinted("running", green)
		if r.Paused || len(r.Reasons) > 0 {
			state = tinted("paused: "+s.reasons(r.state, r.Paused), yellow)
		}
		t.add(text(printable(r.Queue)), number(r.Pending), number(r.Active), number(r.Scheduled), number(r.Retry),
			number(r.Archived), number(r.Completed), right(oldest), state)
	}
	return t
}

// reasons says in one phrase why a queue is paused.
func (s *session) reasons(state admission.PauseState, flag bool) string {
	var parts []string
	for _, r := range state.Reasons {
		part := r.Name
		if r.By != "" {
			part += " by " + words(r.By)
		}
		part += " since " + s.clock(r.At)
		if !r.Until.IsZero() {
			part += ", until " + s.until(r.Until)
		}
		if r.Evidence != "" {
			part += " (" + printable(r.Evidence) + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 && flag {
		return "flag set elsewhere, a worker will adopt it as manual"
	}
	return strings.Join(parts, "; ")
}
