package ops

import (
	"context"
	"encoding/json"
	"time"

	"reprise/store"
	"reprise/tasks"
)

// InputResult is a submitted input with the result of its task.
type InputResult struct {
	Batch      string          `json:"batch,omitempty"`
	Name       string          `json:"name,omitempty"`
	ExternalID string          `json:"external_id,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Key        string          `json:"key"`
	Path       tasks.Path      `json:"path"`
	Queue      string          `json:"queue"`
	State      string          `json:"state"` // waiting, done, archive, hold
	Outcome    tasks.Outcome   `json:"outcome"`
	Summary    string          `json:"summary"` // the song, or the reason
	Reason     string          `json:"reason,omitempty"`
	Final      bool            `json:"final"`
	Cached     bool            `json:"cached"` // answered from the store, at no cost
	FinishedAt *time.Time      `json:"finished_at"`
	Result     json.RawMessage `json:"result"`
}

// Word returns the outcome of a done task, else the state.
func (r InputResult) Word() string {
	if r.State == string(tasks.Done) {
		return string(r.Outcome)
	}
	return r.State
}

// Results returns the inputs of a batch, an external id or a key, oldest first.
func (t *Tasks) Results(ctx context.Context, name string) ([]InputResult, error) {
	rows, err := t.resultRows(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, unknown("%s: neither a batch, a key nor an external id of this store", ShownName(name))
	}
	return mapped(rows, resultOf), nil
}

func resultOf(r store.BatchRow) InputResult {
	st, sub := r.Status, r.Submission
	return InputResult{
		Batch: sub.Batch, Name: ShownName(sub.Name), ExternalID: sub.ExternalID, Metadata: sub.Metadata, Key: sub.Key, Path: st.Path,
		Queue: st.Queue, State: stateWord(st.Finished, st.Verdict), Outcome: st.Outcome, Summary: describe(st), Reason: st.Reason,
		Final: st.Final, Cached: sub.Cached, FinishedAt: stamp(st.FinishedAt), Result: st.Result,
	}
}

// resultRows returns the submissions of a batch, an external id or a key, which may be shortened.
func (t *Tasks) resultRows(ctx context.Context, name string) ([]store.BatchRow, error) {
	rows, err := t.Store.Batch(ctx, name)
	if err != nil || len(rows) > 0 {
		return rows, err
	}
	key, err := t.fullKey(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, f := range []store.SubmissionFilter{{ExternalID: name}, {Key: key}} {
		if rows, err = t.Store.Submissions(ctx, f); err != nil || len(rows) > 0 {
			return rows, err
		}
	}
	st, err := t.Store.TaskStatus(ctx, key) // a task may have no submission
	if err != nil || !st.Known {
		return nil, err
	}
	return []store.BatchRow{{Submission: store.Submission{Key: key}, Status: st}}, nil
}
