package ops

import (
	"context"
	"errors"
	"strings"

	"reprise/store"
	"reprise/tasks"
)

// shortKeyLetters is how much of a key's hash is shown: 50 bits, which no two tasks of a store are likely to share. An
// ambiguous beginning is refused with the keys it may stand for.
const shortKeyLetters = 10

// ShortKey is the beginning of a key, for lists. Every report and action that takes a key takes it, too.
func ShortKey(key string) string {
	path, hash, ok := strings.Cut(key, "_")
	if !ok || len(hash) <= shortKeyLetters {
		return key
	}
	return path + "_" + hash[:shortKeyLetters]
}

// minKeyLetters of a key's hash make a beginning of it: fewer may be a typo, and some commands cost units.
const minKeyLetters = 4

// keyBeginning is what was typed without the "…" of a shortened key; false if no key begins like it.
func keyBeginning(name string) (string, bool) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "…"), "...")
	path, hash, ok := strings.Cut(name, "_")
	_, err := tasks.ParsePath(path)
	return name, ok && err == nil && len(hash) >= minKeyLetters && !strings.ContainsAny(hash, "/.")
}

// fullKey is the key that a name stands for: itself, or the only one that begins so. An unknown name is returned as it is.
func (b *base) fullKey(ctx context.Context, name string) (string, error) {
	st, err := b.Store.TaskStatus(ctx, name)
	if err != nil || st.Known {
		return name, err
	}
	beginning, ok := keyBeginning(name)
	if !ok {
		return name, nil
	}
	keys, err := b.Store.KeysWithPrefix(ctx, beginning, 4)
	switch {
	case err != nil:
		return name, err
	case len(keys) == 1:
		return keys[0], nil
	case len(keys) > 1:
		return name, invalid("%s is the beginning of several keys: %s", ShownName(name), strings.Join(keys, ", "))
	}
	return name, nil
}

func (b *base) fullKeys(ctx context.Context, names []string) ([]string, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		key, err := b.fullKey(ctx, name)
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	return keys, nil
}

// payload is the task's payload; false when the store has none that can be read. The worker reports why it cannot.
func (b *base) payload(ctx context.Context, key string, path tasks.Path) (p tasks.Payload, ok bool, err error) {
	raw, err := b.Store.Payload(ctx, key)
	if errors.Is(err, store.ErrUnknownKey) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	p, err = tasks.Decode(path.Type(), raw)
	return p, err == nil, nil
}
