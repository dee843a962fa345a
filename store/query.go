package store

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

const (
	defaultLimit = 1000    // rows returned if the filter's Limit is 0
	maxLimit     = 100_000 // maximum rows returned
)

// rowLimit returns the number of rows for a filter's Limit.
func rowLimit(limit int) int64 {
	if limit <= 0 {
		return defaultLimit
	}
	return min(int64(limit), maxLimit)
}

// query builds a SELECT whose conditions are added one by one.
type query struct {
	selection  string // SELECT … FROM …
	order      string // GROUP BY … ORDER BY …
	limit      int64
	conditions []string
	args       []any
}

// where adds a condition. Conditions are joined with AND.
func (q *query) where(condition string, args ...any) {
	q.conditions = append(q.conditions, condition)
	q.args = append(q.args, args...)
}

// equal adds "column = value" unless the value is empty.
func (q *query) equal(column, value string) {
	if value != "" {
		q.where(column+" = ?", value)
	}
}

// in adds "column IN (values)". It needs at least one value.
func (q *query) in(column string, values []string) {
	args := make([]any, len(values))
	for i, value := range values {
		args[i] = value
	}
	q.where(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

// between adds since ≤ column < until. A zero time sets no limit.
func (q *query) between(column string, since, until time.Time) {
	if !since.IsZero() {
		q.where(column+" >= ?", since.UnixMilli())
	}
	if !until.IsZero() {
		q.where(column+" < ?", until.UnixMilli())
	}
}

// likePattern returns a LIKE pattern that matches text containing s in lower case. Wildcards in s are escaped.
func likePattern(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(s)) + "%"
}

// scanner is implemented by *sql.Row and *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// each runs a query and calls scan for every row.
func (s *Store) each(ctx context.Context, doing string, q *query, scan func(scanner) error) error {
	statement := q.selection
	if len(q.conditions) > 0 {
		statement += "\nWHERE " + strings.Join(q.conditions, " AND ")
	}
	statement += "\n" + q.order + "\nLIMIT ?"
	rows, err := s.db.QueryContext(ctx, s.dialect.rebind(statement), append(q.args, q.limit)...)
	if err != nil {
		return s.failed(doing, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns a read error
	for rows.Next() {
		if err := scan(rows); err != nil {
			return s.failed(doing, err)
		}
	}
	return s.failed(doing, rows.Err())
}

// readAll runs a query and returns its rows. It returns nil after an error or if no row matches.
func readAll[T any](ctx context.Context, s *Store, doing string, q *query, scan func(scanner) (T, error)) ([]T, error) {
	var found []T
	err := s.each(ctx, doing, q, func(row scanner) error {
		value, err := scan(row)
		found = append(found, value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// scanString reads a row with one text column.
func scanString(row scanner) (value string, err error) {
	err = row.Scan(&value)
	return value, err
}

// instant scans a time column into At, in UTC. NULL becomes the zero time.
type instant struct{ At *time.Time }

// Scan implements sql.Scanner.
func (i instant) Scan(value any) error {
	var ms sql.NullInt64
	if err := ms.Scan(value); err != nil {
		return err
	}
	*i.At = time.Time{}
	if ms.Valid {
		*i.At = time.UnixMilli(ms.Int64).UTC()
	}
	return nil
}
