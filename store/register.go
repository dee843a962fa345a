package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"reprise/tasks"
)

// registerChunk bounds the submissions of one transaction.
const registerChunk = 200

// Submission is one enqueued input. Many submissions may share one task.
type Submission struct {
	// ID names the submission: registering it again changes nothing. Ids that
	// sort by time keep a batch in its order.
	ID         string
	Batch      string
	Key        string
	Path       tasks.Path
	Queue      string // "" = the path's own
	ExternalID string
	Name       string // of the input, for display; never a signed URL
	Metadata   json.RawMessage
	// Payload goes into the task row, where the newest one replaces an older
	// one (its URL may be signed anew). Reads leave it out.
	Payload []byte `json:"-"`
	At      time.Time
	// Cached marks a submission that was answered from the store and costs 0.
	// Register also sets it when the key is done already, unless Fresh is set.
	Cached bool
	// Fresh requests a new call for work that is done. It is not stored.
	Fresh bool `json:"-"`
}

func (sub Submission) validate() error {
	wrong := func(what string) error { return fmt.Errorf("submission %q: %s: %w", sub.ID, what, ErrInvalid) }
	switch {
	case sub.ID == "":
		return wrong("no id")
	case sub.Batch == "":
		return wrong("no batch")
	case sub.Key == "":
		return wrong("no key")
	case sub.Path == "":
		return wrong("no path")
	case sub.At.IsZero():
		return wrong("no time")
	case sub.Metadata != nil && !json.Valid(sub.Metadata):
		return wrong("metadata is not JSON")
	}
	return nil
}

const registerTaskQuery = `
INSERT INTO task (key, path, queue, payload, generation, created_at, updated_at)
VALUES (?, ?, ?, ?, 0, ?, ?)
ON CONFLICT (key) DO UPDATE SET payload = excluded.payload
WHERE excluded.payload IS NOT NULL AND (task.payload IS NULL OR task.payload <> excluded.payload)`

const registerSubmissionQuery = `
INSERT INTO submission (id, batch, key, path, queue, external_id, name, metadata, cached, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING`

// Register records submissions before their tasks are enqueued and returns the
// status of each key in the same order, with results. It creates the task rows of
// new keys. It commits in chunks; after an error some may be recorded, and
// registering all of them again is safe.
func (s *Store) Register(ctx context.Context, submissions []Submission) ([]TaskStatus, error) {
	for i := range submissions {
		if err := submissions[i].validate(); err != nil {
			return nil, fmt.Errorf("register: %w", err)
		}
	}
	statuses := make([]TaskStatus, 0, len(submissions))
	for len(submissions) > 0 {
		chunk := submissions[:min(registerChunk, len(submissions))]
		submissions = submissions[len(chunk):]
		found := make([]TaskStatus, len(chunk))
		err := s.write(ctx, "register submissions", func(ctx context.Context, tx *sql.Tx) error {
			return s.register(ctx, tx, chunk, found)
		})
		if err != nil {
			return nil, err
		}
		statuses = append(statuses, found...)
	}
	return statuses, nil
}

func (s *Store) register(ctx context.Context, tx *sql.Tx, chunk []Submission, found []TaskStatus) error {
	for i := range chunk {
		sub := &chunk[i]
		at, queue := sub.At.UnixMilli(), sub.Queue
		if queue == "" {
			queue = sub.Path.Queue("")
		}
		if _, err := tx.StmtContext(ctx, s.stmts.registerTask).ExecContext(ctx,
			sub.Key, string(sub.Path), text(queue), bytesOrNull(sub.Payload), at, at); err != nil {
			return fmt.Errorf("write the task row: %w", err)
		}
		status, err := scanStatus(tx.StmtContext(ctx, s.stmts.status).QueryRowContext(ctx, sub.Key))
		if err != nil {
			return fmt.Errorf("read the task row: %w", err)
		}
		cached := sub.Cached || status.Verdict == tasks.Done && status.Finished && !sub.Fresh
		if _, err := tx.StmtContext(ctx, s.stmts.registerSubmission).ExecContext(ctx,
			sub.ID, sub.Batch, sub.Key, string(sub.Path), text(queue), text(sub.ExternalID), text(sub.Name),
			jsonOrNull(sub.Metadata), cached, at); err != nil {
			return fmt.Errorf("write the submission row: %w", err)
		}
		found[i] = status
	}
	return nil
}
