package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"reprise/tasks"
)

// registerChunk is the maximum number of submissions in one transaction.
const registerChunk = 200

// Submission is one enqueued input. Many submissions may share one task.
type Submission struct {
	// ID identifies the submission. Registering the same ID again changes nothing. Submissions of a batch with the same
	// time are sorted by ID, so IDs should sort by time.
	ID         string
	Batch      string
	Key        string
	Path       tasks.Path
	Queue      string // "" = the path's queue
	ExternalID string
	Name       string // input name, for display; never a signed URL
	Metadata   json.RawMessage
	// Payload is stored in the task row and replaces an older payload, because the new URL may have a newer signature.
	// Lists do not return it.
	Payload []byte `json:"-"`
	At      time.Time
	// Cached means that the submission needs no call, because the store has its result. Register also sets it if the
	// task is done and Fresh is not set.
	Cached bool
	// Fresh requests a new call even if the task is done. It is not stored.
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

var registerTask = &statement{"write the task row", `
INSERT INTO task (key, path, queue, payload, generation, created_at, updated_at)
VALUES (?, ?, ?, ?, 0, ?, ?)
ON CONFLICT (key) DO UPDATE SET payload = excluded.payload
WHERE excluded.payload IS NOT NULL AND (task.payload IS NULL OR task.payload <> excluded.payload)`}

var registerSubmission = &statement{"write the submission row", `
INSERT INTO submission (id, batch, key, path, queue, external_id, name, metadata, cached, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING`}

// Register stores submissions before their tasks are enqueued, and creates the task rows of new keys. It returns each
// submission's task status, with results, in the same order. It commits in chunks. After an error some chunks may be
// committed. The caller can then register all submissions again.
func (s *Store) Register(ctx context.Context, submissions []Submission) ([]TaskStatus, error) {
	for i := range submissions {
		if err := submissions[i].validate(); err != nil {
			return nil, fmt.Errorf("register: %w", err)
		}
	}
	defer s.marked.Store(false)
	statuses := make([]TaskStatus, 0, len(submissions))
	for chunk := range slices.Chunk(submissions, registerChunk) {
		found := make([]TaskStatus, len(chunk))
		err := s.write(ctx, "register submissions", func(ctx context.Context, tx *sql.Tx) (err error) {
			for i := range chunk {
				if found[i], err = s.stmts.register(ctx, tx, &chunk[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		statuses = append(statuses, found...)
	}
	return statuses, nil
}

func (p statements) register(ctx context.Context, tx *sql.Tx, sub *Submission) (TaskStatus, error) {
	at, queue := sub.At.UnixMilli(), queueOrDefault(sub.Queue, sub.Path)
	if _, err := p.exec(ctx, tx, registerTask, sub.Key, sub.Path, queue, bytesOrNull(sub.Payload), at, at); err != nil {
		return TaskStatus{}, err
	}
	status, err := scanStatus(tx.StmtContext(ctx, p[selectStatus]).QueryRowContext(ctx, sub.Key))
	if err != nil {
		return TaskStatus{}, fmt.Errorf("%s: %w", selectStatus.doing, err)
	}
	cached := sub.Cached || status.Verdict == tasks.Done && status.Finished && !sub.Fresh
	_, err = p.exec(ctx, tx, registerSubmission, sub.ID, sub.Batch, sub.Key, sub.Path, queue,
		text(sub.ExternalID), text(sub.Name), jsonOrNull(sub.Metadata), cached, at)
	return status, err
}
