package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/text"
	"reprise/store"
	"reprise/tasks"
)

// find returns the keys of the tasks that a name stands for, newest first. A name is a key or its beginning, an
// external id, the name of an input or its last part, or a file with the content of an input.
func (b *base) find(ctx context.Context, name string) ([]string, error) {
	if strings.TrimSpace(name) == "" {
		return nil, invalid("which task? expected a key, an external id or the name of an input")
	}
	for _, look := range []func(context.Context, string) ([]string, error){b.byKey, b.byName, b.byBeginning, b.byContent, b.byLastPart, b.byPrefix} {
		if keys, err := look(ctx, name); err != nil || len(keys) > 0 {
			return keys, err
		}
	}
	if batch, err := b.Store.BatchProgress(ctx, name); err == nil && batch.Total > 0 {
		return nil, invalid("%s is a batch: inspect results %s lists its tasks", text.Printable(name), text.Printable(name))
	}
	latest, err := b.Store.LatestNames(ctx, 10_000)
	if err != nil {
		return nil, err
	}
	for i, n := range latest {
		latest[i] = path.Base(filepath.ToSlash(n))
	}
	near := text.DidYouMean(path.Base(filepath.ToSlash(ShownName(name))), latest)
	return nil, unknown("%s: neither a key, an external id nor an enqueued input of this store%s", ShownName(name), near)
}

func (b *base) byKey(ctx context.Context, name string) ([]string, error) {
	st, err := b.Store.TaskStatus(ctx, name)
	if err != nil || !st.Known {
		return nil, err
	}
	return []string{name}, nil
}

// byName finds an external id, or the name of an input as given or as an absolute path.
func (b *base) byName(ctx context.Context, name string) ([]string, error) {
	filters := []store.SubmissionFilter{{ExternalID: name}, {Name: name}}
	if strings.Contains(name, "://") {
		filters = append(filters, store.SubmissionFilter{Name: tasks.RedactURL(name)})
	} else if abs, err := filepath.Abs(name); err == nil && abs != name {
		filters = append(filters, store.SubmissionFilter{Name: abs})
	}
	for _, f := range filters {
		rows, err := b.Store.Submissions(ctx, f)
		if err != nil || len(rows) > 0 {
			return keysOf(rows), err
		}
	}
	return nil, nil
}

func (b *base) byBeginning(ctx context.Context, name string) ([]string, error) {
	key, err := b.fullKey(ctx, name)
	if err != nil || key == name {
		return nil, err
	}
	return []string{key}, nil
}

// byContent finds the tasks of a file by its content, if they were enqueued with default parameters. The file may have
// been renamed.
func (b *base) byContent(ctx context.Context, name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil // not a readable file
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	in := tasks.Input{Kind: tasks.FileInput, SHA256: hex.EncodeToString(h.Sum(nil))}
	var out []string
	for _, path := range []tasks.Path{tasks.Recognize, tasks.Enterprise} {
		keys, err := b.byKey(ctx, tasks.Key(path, in, tasks.Params{}))
		if err != nil {
			return nil, err
		}
		out = append(out, keys...)
	}
	return out, nil
}

// byLastPart finds inputs whose names end with a slash and the given name.
func (b *base) byLastPart(ctx context.Context, name string) ([]string, error) {
	if strings.Contains(name, "://") {
		return nil, nil
	}
	rows, err := b.Store.Submissions(ctx, store.SubmissionFilter{BaseName: filepath.ToSlash(filepath.Clean(name))})
	return keysOf(rows), err
}

// byPrefix accepts a name that begins like a key: its task may belong to another store, or have no row.
func (b *base) byPrefix(_ context.Context, name string) ([]string, error) {
	word, _, ok := strings.Cut(name, "_")
	if _, err := tasks.ParsePath(word); err == nil && ok {
		return []string{name}, nil
	}
	return nil, nil
}

// keysOf returns the keys of submissions, newest first and each once.
func keysOf(rows []store.BatchRow) []string {
	var out []string
	for _, r := range slices.Backward(rows) {
		if !slices.Contains(out, r.Submission.Key) {
			out = append(out, r.Submission.Key)
		}
	}
	return out
}
