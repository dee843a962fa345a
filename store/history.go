package store

import (
	"context"
	"encoding/json"
	"time"

	"reprise/tasks"
)

// Result is the final verdict of one task generation.
type Result struct {
	Key        string
	Generation int64
	AttemptID  string // "" for a verdict without a call
	Verdict    tasks.Verdict
	Outcome    tasks.Outcome
	Reason     string
	Final      bool
	Result     json.RawMessage // nil = none
	FinishedAt time.Time
}

// History returns the final verdicts of all generations of a task, oldest first. It returns none for an unknown key.
func (s *Store) History(ctx context.Context, key string) ([]Result, error) {
	q := query{order: "ORDER BY generation", limit: maxLimit}
	q.selection = "SELECT key, generation, attempt_id, verdict, outcome, reason, final, body, finished_at FROM result"
	q.where("key = ?", key)
	return readAll(ctx, s, "read the history of a task", &q, func(row scanner) (r Result, err error) {
		err = row.Scan(&r.Key, &r.Generation, &r.AttemptID, &r.Verdict, &r.Outcome, &r.Reason, &r.Final,
			(*[]byte)(&r.Result), instant{&r.FinishedAt})
		return r, err
	})
}
