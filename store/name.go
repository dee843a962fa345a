package store

import (
	"context"
	"math"
	"slices"
	"unicode/utf8"
)

// nameChunk is the maximum number of keys in one statement.
const nameChunk = 500

// Names returns the input name of each key. The name comes from the newest submission that has one. Keys without a
// name are omitted.
func (s *Store) Names(ctx context.Context, keys []string) (map[string]string, error) {
	found := make(map[string]string, len(keys))
	for chunk := range slices.Chunk(keys, nameChunk) {
		q := query{selection: "SELECT key, name FROM submission", order: "ORDER BY created_at, id", limit: math.MaxInt64}
		q.where("name <> ''")
		q.in("key", chunk)
		err := s.each(ctx, "read the names of tasks", &q, func(row scanner) error {
			var key, name string
			err := row.Scan(&key, &name)
			found[key] = name
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// LatestNames returns the input names of the newest submissions, newest first.
func (s *Store) LatestNames(ctx context.Context, limit int) ([]string, error) {
	q := query{selection: "SELECT name FROM submission", order: "ORDER BY created_at DESC, id DESC", limit: rowLimit(limit)}
	q.where("name <> ''")
	return readAll(ctx, s, "read the latest names", &q, scanString)
}

// KeysWithPrefix returns the task keys that start with prefix, sorted.
func (s *Store) KeysWithPrefix(ctx context.Context, prefix string, limit int) ([]string, error) {
	q := query{selection: "SELECT key FROM task", order: "ORDER BY key", limit: rowLimit(limit)}
	q.where("SUBSTR(key, 1, ?) = ?", utf8.RuneCountInString(prefix), prefix)
	return readAll(ctx, s, "find keys by prefix", &q, scanString)
}
