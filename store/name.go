package store

import (
	"context"
	"database/sql"
	"strings"
	"unicode/utf8"
)

// nameChunk bounds the keys of one statement.
const nameChunk = 500

// Names reads the names of the inputs of tasks: for each key the name in its
// newest submission. Keys without a name are omitted.
func (s *Store) Names(ctx context.Context, keys []string) (map[string]string, error) {
	found := make(map[string]string, len(keys))
	for len(keys) > 0 {
		chunk := keys[:min(nameChunk, len(keys))]
		keys = keys[len(chunk):]
		args := make([]any, len(chunk))
		for i, key := range chunk {
			args[i] = key
		}
		err := s.each(ctx, "read the names of tasks", `
SELECT key, name FROM submission
WHERE name <> '' AND key IN (?`+strings.Repeat(", ?", len(chunk)-1)+`)
ORDER BY created_at, id`, args, func(rows *sql.Rows) error {
			var key, name string
			err := rows.Scan(&key, &name)
			found[key] = name
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// LatestNames reads the names of the newest submissions, newest first.
func (s *Store) LatestNames(ctx context.Context, limit int) ([]string, error) {
	var q query
	q.where("name <> ''")
	var found []string
	err := s.each(ctx, "read names", q.sql("SELECT name FROM submission", "ORDER BY created_at DESC, id DESC", limit), q.args, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		found = append(found, name)
		return err
	})
	return found, err
}

// KeysWithPrefix reads the keys of tasks that begin with a text, in their order.
func (s *Store) KeysWithPrefix(ctx context.Context, beginning string, limit int) ([]string, error) {
	var q query
	q.where("SUBSTR(key, 1, ?) = ?", utf8.RuneCountInString(beginning), beginning)
	var found []string
	err := s.each(ctx, "look for keys", q.sql("SELECT key FROM task", "ORDER BY key", limit), q.args, func(rows *sql.Rows) error {
		var key string
		err := rows.Scan(&key)
		found = append(found, key)
		return err
	})
	return found, err
}
