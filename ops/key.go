package ops

import (
	"context"
	"errors"
	"strings"

	"reprise/store"
	"reprise/tasks"
)

// shortKeyLetters is how many letters of a key's hash lists show. They are 50 bits, so two tasks of a store hardly
// share them. An ambiguous key is refused with the keys that it may stand for.
const shortKeyLetters = 10

// ShortKey returns the beginning of a key, for lists. Every report and action accepts it in place of the key.
func ShortKey(key string) string {
	path, hash, ok := strings.Cut(key, "_")
	if !ok || len(hash) <= shortKeyLetters {
		return key
	}
	return path + "_" + hash[:shortKeyLetters]
}

// minKeyLetters is how many letters of its hash a shortened key needs. Fewer letters may be a typo, and some commands
// cost units.
const minKeyLetters = 4

// keyBeginning returns a name without the "…" of a shortened key. It returns false if no key can begin with the name.
func keyBeginning(name string) (string, bool) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "…"), "...")
	path, hash, ok := strings.Cut(name, "_")
	_, err := tasks.ParsePath(path)
	return name, ok && err == nil && len(hash) >= minKeyLetters && !strings.ContainsAny(hash, "/.")
}

// fullKey returns the key that a name stands for: the name itself, or the only key that begins with it. It returns an
// unknown name unchanged.
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

// payload returns the task's payload. It returns false if the store has no payload that can be read.
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
