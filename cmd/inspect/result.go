package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/store"
	"reprise/tasks"
)

func newResults(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "results BATCH|KEY|EXTERNAL-ID",
		Short: "The results of a batch, a task or an external id (costs nothing)",
		Example: `  inspect results b7k2qdx
  inspect results b7k2qdx --json > results.json
  inspect results recognize_3q…`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), needsStore, func(ctx context.Context, s *session) error {
				return s.results(ctx, args[0])
			})
		},
	}
}

// resultRow is a result for --json.
type resultRow struct {
	Batch      string          `json:"batch,omitempty"`
	Name       string          `json:"name,omitempty"`
	ExternalID string          `json:"external_id,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Key        string          `json:"key"`
	Path       tasks.Path      `json:"path"`
	Queue      string          `json:"queue"`
	State      string          `json:"state"` // waiting, done, archive, hold
	Outcome    tasks.Outcome   `json:"outcome"`
	Reason     string          `json:"reason,omitempty"`
	Final      bool            `json:"final"`
	Cached     bool            `json:"cached"` // answered from the store: cost nothing
	FinishedAt *time.Time      `json:"finished_at"`
	Result     json.RawMessage `json:"result"`
}

func resultOf(r store.BatchRow) resultRow {
	st, sub := r.Status, r.Submission
	row := resultRow{
		Batch: sub.Batch, Name: sub.Name, ExternalID: sub.ExternalID, Metadata: sub.Metadata, Key: sub.Key, Path: st.Path, Queue: st.Queue,
		State: "waiting", Outcome: st.Outcome, Reason: st.Reason, Final: st.Final, Cached: sub.Cached,
		FinishedAt: stamp(st.FinishedAt), Result: st.Result,
	}
	if st.Finished {
		row.State = string(st.Verdict)
	}
	return row
}

func (s *session) results(ctx context.Context, name string) error {
	rows, err := s.resultRows(ctx, name)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return refused("nothing is known of %s: neither a batch, a key nor an external id of this store", shownName(name))
	}
	if s.json {
		out := make([]resultRow, len(rows))
		for i, r := range rows {
			out[i] = resultOf(r)
		}
		return s.writeJSON(out)
	}
	t := table{head: []string{"INPUT", "STATE", "RESULT"}}
	counts := map[string]int{}
	for _, r := range rows {
		state := standingWord(r.Status)
		counts[state]++
		what := describe(r.Status)
		if r.Submission.Cached {
			what = strings.TrimSpace(what + " (known, free)")
		}
		t.add(text(printable(firstOf(r.Submission.Name, r.Submission.Key))), resultCell(state, r.Status), text(printable(what)))
	}
	s.table(t)
	parts := []string{}
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %s", thousands(int64(counts[state])), state))
	}
	s.line("%s: %s", count(len(rows), "input", "inputs"), strings.Join(parts, ", "))
	return nil
}

func resultCell(state string, st store.TaskStatus) cell {
	switch {
	case !st.Finished:
		return text(state)
	case st.Outcome == tasks.NoMatch:
		return tinted(state, yellow)
	case st.Verdict == tasks.Done:
		return tinted(state, green)
	}
	return tinted(state, red)
}

// resultRows are the submissions of a batch, an external id or a key.
func (s *session) resultRows(ctx context.Context, name string) ([]store.BatchRow, error) {
	rows, err := s.store.Batch(ctx, name)
	if err != nil || len(rows) > 0 {
		return rows, err
	}
	for _, f := range []store.SubmissionFilter{{ExternalID: name}, {Key: name}} {
		rows, err := s.store.Submissions(ctx, f)
		if err != nil || len(rows) > 0 {
			return rows, err
		}
	}
	key, err := s.fullKey(ctx, name)
	if err != nil {
		return nil, err
	}
	if key != name {
		return s.resultRows(ctx, key)
	}
	st, err := s.store.TaskStatus(ctx, name) // a task may have come without a submission
	if err != nil || !st.Known {
		return nil, err
	}
	return []store.BatchRow{{Submission: store.Submission{Key: name}, Status: st}}, nil
}
