package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"reprise/tasks"
)

// Result is the verdict of one finished generation of a key.
type Result struct {
	Key        string
	Generation int64
	AttemptID  string // "" when the verdict was made without a call
	Verdict    tasks.Verdict
	Outcome    tasks.Outcome
	Reason     string
	Final      bool
	Result     json.RawMessage // nil without one
	FinishedAt time.Time
}

// History reads the verdicts of all generations of a key, oldest first. An
// unknown key has none.
func (s *Store) History(ctx context.Context, key string) ([]Result, error) {
	var found []Result
	err := s.each(ctx, "read the history of a task", `
SELECT key, generation, attempt_id, verdict, outcome, reason, final, body, finished_at
FROM result WHERE key = ? ORDER BY generation`, []any{key}, func(rows *sql.Rows) error {
		var r Result
		var body sql.NullString
		var finished sql.NullInt64
		err := rows.Scan(&r.Key, &r.Generation, &r.AttemptID, &r.Verdict, &r.Outcome, &r.Reason, &r.Final, &body, &finished)
		r.Result, r.FinishedAt = raw(body), instant(finished)
		found = append(found, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}
