package store

import (
	"context"
	"database/sql"
	"time"
	"unicode/utf8"

	"reprise/tasks"
)

// BatchRow is a submission with the status of its task.
type BatchRow struct {
	Submission Submission // without payload
	Status     TaskStatus
}

// SubmissionFilter selects submissions; fields that are set must all match.
type SubmissionFilter struct {
	Batch, ExternalID, Key string
	// Name is what the submission called its input, exactly. No index has it.
	Name string
	// BaseName is the last part of such a name, behind its last slash.
	BaseName string
	// Since and Until bound the registration: Since ≤ at < Until. Zero = open.
	Since, Until time.Time
	// AfterAt and AfterID are those of the last row of the page before.
	AfterAt time.Time
	AfterID string
	Limit   int // 0 = 1,000; at most 100,000
}

const submissionSelection = `
SELECT ` + statusColumns + `,
       s.id, s.batch, s.key, s.path, s.queue, s.external_id, s.name, s.metadata, s.cached, s.created_at
FROM submission s JOIN task t ON t.key = s.key
     LEFT JOIN result r ON r.key = t.key AND r.generation = t.generation`

// Submissions reads submissions with the status of their tasks, oldest first.
func (s *Store) Submissions(ctx context.Context, f SubmissionFilter) ([]BatchRow, error) {
	var q query
	q.equal("s.batch", f.Batch)
	q.equal("s.external_id", f.ExternalID)
	q.equal("s.key", f.Key)
	q.equal("s.name", f.Name)
	if f.BaseName != "" {
		end := "/" + f.BaseName
		q.where("(s.name = ? OR SUBSTR(s.name, LENGTH(s.name) - ? + 1) = ?)", f.BaseName, utf8.RuneCountInString(end), end)
	}
	q.between("s.created_at", f.Since, f.Until)
	if f.AfterID != "" {
		at := f.AfterAt.UnixMilli()
		q.where("(s.created_at > ? OR (s.created_at = ? AND s.id > ?))", at, at, f.AfterID)
	}
	var found []BatchRow
	statement := q.sql(submissionSelection, "ORDER BY s.created_at, s.id", f.Limit)
	err := s.each(ctx, "read submissions", statement, q.args, func(rows *sql.Rows) error {
		row, err := scanBatchRow(rows)
		if err == nil {
			found = append(found, row)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func scanBatchRow(rows *sql.Rows) (BatchRow, error) {
	var sub Submission
	var metadata sql.NullString
	var at sql.NullInt64
	status, err := scanStatus(rows, &sub.ID, &sub.Batch, &sub.Key, &sub.Path, &sub.Queue,
		&sub.ExternalID, &sub.Name, &metadata, &sub.Cached, &at)
	if err != nil {
		return BatchRow{}, err
	}
	sub.Metadata, sub.At = raw(metadata), instant(at)
	return BatchRow{Submission: sub, Status: status}, nil
}

// Batch reads all submissions of a batch, oldest first, with results. An
// unknown batch is empty. Use Submissions to read a large one in pages.
func (s *Store) Batch(ctx context.Context, id string) ([]BatchRow, error) {
	var all []BatchRow
	filter := SubmissionFilter{Batch: id, Limit: defaultLimit}
	for {
		page, err := s.Submissions(ctx, filter)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < filter.Limit {
			return all, nil
		}
		last := page[len(page)-1].Submission
		filter.AfterAt, filter.AfterID = last.At, last.ID
	}
}

// Progress counts the submissions of a batch by the status of their tasks.
type Progress struct {
	Total    int64 // all submissions
	Waiting  int64 // unfinished
	Done     int64
	Archived int64
	Held     int64 // uploads that wait for an operator
	Cached   int64 // of Total: answered from the store
	// Outcomes counts the finished submissions.
	Outcomes map[tasks.Outcome]int64
}

// BatchProgress counts a batch. An unknown batch has Total 0.
func (s *Store) BatchProgress(ctx context.Context, batch string) (Progress, error) {
	p := Progress{Outcomes: map[tasks.Outcome]int64{}}
	err := s.each(ctx, "count a batch", `
SELECT t.finished, t.verdict, t.outcome, COUNT(*), SUM(CASE WHEN s.cached THEN 1 ELSE 0 END)
FROM submission s JOIN task t ON t.key = s.key
WHERE s.batch = ?
GROUP BY t.finished, t.verdict, t.outcome`, []any{batch}, func(rows *sql.Rows) error {
		var finished bool
		var verdict tasks.Verdict
		var outcome tasks.Outcome
		var n, cached int64
		if err := rows.Scan(&finished, &verdict, &outcome, &n, &cached); err != nil {
			return err
		}
		p.add(finished, verdict, outcome, n)
		p.Cached += cached
		return nil
	})
	return p, err
}

func (p *Progress) add(finished bool, verdict tasks.Verdict, outcome tasks.Outcome, n int64) {
	p.Total += n
	if !finished {
		p.Waiting += n
		return
	}
	p.Outcomes[outcome] += n
	switch verdict {
	case tasks.Done:
		p.Done += n
	case tasks.Hold:
		p.Held += n
	default:
		p.Archived += n
	}
}
