package main

import (
	"context"
	"fmt"
	"path"
	"strings"

	"reprise/store"
	"reprise/tasks"
)

// shortKeyLetters is how much of a key's hash is shown: 50 bits, which no two
// tasks of a store are likely to share. What is ambiguous is refused with the
// keys it may stand for.
const shortKeyLetters = 10

// shortKey is the beginning of a key that people type.
func shortKey(key string) string {
	path, hash, ok := strings.Cut(key, "_")
	if !ok || len(hash) <= shortKeyLetters {
		return key
	}
	return path + "_" + hash[:shortKeyLetters]
}

// leastLetters of a key's hash make a beginning of it: less may be a slip of the
// pen, and some commands spend.
const leastLetters = 4

// keyBeginning is what was typed without the "…" of a shortened key; false if no
// key begins like it.
func keyBeginning(name string) (string, bool) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "…"), "...")
	path, hash, ok := strings.Cut(name, "_")
	_, err := tasks.ParsePath(path)
	return name, ok && err == nil && len(hash) >= leastLetters && !strings.ContainsAny(hash, "/.")
}

// fullKey is the key that a person means: itself, or the only one that begins so.
// What is not known is given back as it is.
func (s *session) fullKey(ctx context.Context, name string) (string, error) {
	st, err := s.store.TaskStatus(ctx, name)
	if err != nil || st.Known {
		return name, err
	}
	beginning, ok := keyBeginning(name)
	if !ok {
		return name, nil
	}
	keys, err := s.store.KeysWithPrefix(ctx, beginning, 4)
	switch {
	case err != nil:
		return name, err
	case len(keys) == 1:
		return keys[0], nil
	case len(keys) > 1:
		return name, usage("%s is the beginning of several keys: %s", shownName(name), strings.Join(keys, ", "))
	}
	return name, nil
}

// fullKeys does so for several.
func (s *session) fullKeys(ctx context.Context, names []string) ([]string, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		key, err := s.fullKey(ctx, name)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return keys, nil
}

// inputNames are what people call the inputs of tasks, as they were enqueued;
// where nobody gave a name, the file or URL itself. No URL has its query.
func (s *session) inputNames(ctx context.Context, rows []store.TaskRow) (map[string]string, error) {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.Key
	}
	names, err := s.store.Names(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("name the inputs: %w", err)
	}
	for _, r := range rows {
		if names[r.Key] == "" {
			p, ok, err := s.payload(ctx, r.Key, r.Path)
			if err != nil {
				return nil, err
			}
			if ok {
				names[r.Key] = firstOf(p.Input.Path, p.Input.URL)
			}
		}
		if strings.Contains(names[r.Key], "://") {
			names[r.Key] = tasks.RedactURL(names[r.Key])
		}
	}
	return names, nil
}

// nameWidth is the most that a list shows of a name.
const nameWidth = 48

// nameShown is a name in a list: of a file its last part, of a URL its end.
func nameShown(name string) string {
	switch {
	case name == "":
		return "–"
	case !strings.Contains(name, "://"):
		name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	}
	if r := []rune(printable(name)); len(r) > nameWidth {
		return "…" + string(r[len(r)-nameWidth+1:])
	}
	return printable(name)
}
