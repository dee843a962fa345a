package store

import (
	"context"
	"math"
	"unicode/utf8"

	"reprise/tasks"
)

// BatchRow is a submission with its task's status.
type BatchRow struct {
	Submission Submission // without its payload
	Status     TaskStatus
}

// SubmissionFilter selects the submissions that match all set fields.
type SubmissionFilter struct {
	ExternalID, Key string
	// Name is the input's full name. No index covers it.
	Name string
	// BaseName is the part of the input's name after the last slash. No index covers it.
	BaseName string
	Limit    int // 0 = 1,000; at most 100,000
}

// Submissions returns submissions with their tasks' status, oldest first.
func (s *Store) Submissions(ctx context.Context, f SubmissionFilter) ([]BatchRow, error) {
	q := query{limit: rowLimit(f.Limit)}
	q.equal("s.external_id", f.ExternalID)
	q.equal("s.key", f.Key)
	q.equal("s.name", f.Name)
	if f.BaseName != "" {
		end := "/" + f.BaseName
		q.where("(s.name = ? OR SUBSTR(s.name, LENGTH(s.name) - ? + 1) = ?)", f.BaseName, utf8.RuneCountInString(end), end)
	}
	return s.submissions(ctx, &q)
}

// Batch returns all submissions of a batch with their tasks' status, oldest first. It returns none for an unknown
// batch.
func (s *Store) Batch(ctx context.Context, id string) ([]BatchRow, error) {
	q := query{limit: math.MaxInt64}
	q.where("s.batch = ?", id)
	return s.submissions(ctx, &q)
}

func (s *Store) submissions(ctx context.Context, q *query) ([]BatchRow, error) {
	q.selection = `
SELECT ` + taskColumns + `, r.body,
       s.id, s.batch, s.key, s.path, s.queue, s.external_id, s.name, s.metadata, s.cached, s.created_at
FROM submission s JOIN task t ON t.key = s.key
     LEFT JOIN result r ON r.key = t.key AND r.generation = t.generation`
	q.order = "ORDER BY s.created_at, s.id"
	return readAll(ctx, s, "list submissions", q, func(row scanner) (b BatchRow, err error) {
		sub := &b.Submission
		err = scanTask(row, &b.Status, (*[]byte)(&b.Status.Result),
			&sub.ID, &sub.Batch, &sub.Key, &sub.Path, &sub.Queue, &sub.ExternalID, &sub.Name,
			(*[]byte)(&sub.Metadata), &sub.Cached, instant{&sub.At})
		return b, err
	})
}

// Progress counts a batch's submissions by their tasks' status.
type Progress struct {
	Total    int64 // all submissions
	Waiting  int64 // unfinished
	Done     int64
	Archived int64
	Held     int64 // uploads that wait for an operator
	Cached   int64 // submissions without a call, because their task was already done
	// Outcomes counts the finished submissions.
	Outcomes map[tasks.Outcome]int64
}

// BatchProgress counts a batch's submissions. An unknown batch has Total 0.
func (s *Store) BatchProgress(ctx context.Context, batch string) (Progress, error) {
	q := query{order: "GROUP BY t.finished, t.verdict, t.outcome", limit: maxLimit}
	q.selection = `
SELECT t.finished, t.verdict, t.outcome, COUNT(*), SUM(CASE WHEN s.cached THEN 1 ELSE 0 END)
FROM submission s JOIN task t ON t.key = s.key`
	q.where("s.batch = ?", batch)
	p := Progress{Outcomes: map[tasks.Outcome]int64{}}
	err := s.each(ctx, "count batch submissions", &q, func(row scanner) error {
		var t TaskStatus
		var n, cached int64
		if err := row.Scan(&t.Finished, &t.Verdict, &t.Outcome, &n, &cached); err != nil {
			return err
		}
		p.Total += n
		p.Cached += cached
		if !t.Finished {
			p.Waiting += n
			return nil
		}
		p.Outcomes[t.Outcome] += n
		switch t.Verdict {
		case tasks.Done:
			p.Done += n
		case tasks.Hold:
			p.Held += n
		default:
			p.Archived += n
		}
		return nil
	})
	return p, err
}
