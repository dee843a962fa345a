package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// defaultLimit and maxLimit bound the rows of one read.
const (
	defaultLimit = 1000
	maxLimit     = 100_000
)

// query collects conditions and their arguments.
type query struct {
	conditions []string
	args       []any
}

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

// between adds since ≤ column < until; a zero time leaves its side open.
func (q *query) between(column string, since, until time.Time) {
	if !since.IsZero() {
		q.where(column+" >= ?", since.UnixMilli())
	}
	if !until.IsZero() {
		q.where(column+" < ?", until.UnixMilli())
	}
}

// sql appends the conditions, an order and a limit to a SELECT.
func (q *query) sql(selection, order string, limit int) string {
	var b strings.Builder
	b.WriteString(selection)
	if len(q.conditions) > 0 {
		b.WriteString("\nWHERE " + strings.Join(q.conditions, " AND "))
	}
	b.WriteString("\n" + order)
	if limit <= 0 {
		limit = defaultLimit
	}
	b.WriteString("\nLIMIT ?")
	q.args = append(q.args, min(limit, maxLimit))
	return b.String()
}

// likePattern matches a text anywhere; its own wildcards are taken literally.
func likePattern(s string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(s)) + "%"
}

// each runs a query and scans every row.
func (s *Store) each(ctx context.Context, doing, query string, args []any, scan func(*sql.Rows) error) (err error) {
	rows, err := s.db.QueryContext(ctx, s.dialect.rebind(query), args...)
	if err != nil {
		return s.failed(doing, err)
	}
	defer func() { err = errors.Join(err, s.failed(doing, rows.Close())) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return s.failed(doing, err)
		}
	}
	return s.failed(doing, rows.Err())
}
