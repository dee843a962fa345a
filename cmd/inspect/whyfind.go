package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reprise/store"
	"reprise/tasks"
)

// find turns what a person typed into task keys, the newest first: a key or its
// beginning, an external id, the name an input was enqueued under or the last
// part of it, or a file's content.
func (s *session) find(ctx context.Context, name string) ([]string, error) {
	if strings.TrimSpace(name) == "" {
		return nil, usage("which task? want a key, an external id or the name of an input")
	}
	st, err := s.store.TaskStatus(ctx, name)
	if err != nil {
		return nil, err
	}
	if st.Known {
		return []string{name}, nil
	}
	for _, f := range nameFilters(name) {
		rows, err := s.store.Submissions(ctx, f)
		if err != nil {
			return nil, err
		}
		if keys := keysOf(rows); len(keys) > 0 {
			return keys, nil
		}
	}
	if key, err := s.fullKey(ctx, name); err != nil || key != name {
		return []string{key}, err
	}
	if keys, err := s.findContent(ctx, name); err != nil || len(keys) > 0 {
		return keys, err
	}
	if keys, err := s.findBase(ctx, name); err != nil || len(keys) > 0 {
		return keys, err
	}
	if word, _, ok := strings.Cut(name, "_"); ok { // a task of another store, or one that lost its row
		if _, err := tasks.ParsePath(word); err == nil {
			return []string{name}, nil
		}
	}
	if batch, err := s.store.BatchProgress(ctx, name); err == nil && batch.Total > 0 {
		return nil, usage("%s is a batch: inspect results %s lists its tasks", printable(name), printable(name))
	}
	latest, err := s.store.LatestNames(ctx, 10_000)
	if err != nil {
		return nil, err
	}
	return nil, refused("nothing is known of %s: neither a key, an external id nor an enqueued input of this store%s", shownName(name), didYouMeanInput(name, latest))
}

// nameFilters are the submissions a name may stand for.
func nameFilters(name string) []store.SubmissionFilter {
	out := []store.SubmissionFilter{{ExternalID: name}, {Name: name}}
	if strings.Contains(name, "://") {
		return append(out, store.SubmissionFilter{Name: tasks.RedactURL(name)})
	}
	if abs, err := filepath.Abs(name); err == nil && abs != name {
		out = append(out, store.SubmissionFilter{Name: abs})
	}
	return out
}

// keysOf are the keys of submissions, each once, the newest first.
func keysOf(rows []store.BatchRow) []string {
	var out []string
	for _, r := range slices.Backward(rows) {
		if !slices.Contains(out, r.Submission.Key) {
			out = append(out, r.Submission.Key)
		}
	}
	return out
}

// findBase finds the tasks whose input's name ends with what was typed, behind a
// slash.
func (s *session) findBase(ctx context.Context, name string) ([]string, error) {
	if strings.Contains(name, "://") || name == "" {
		return nil, nil
	}
	rows, err := s.store.Submissions(ctx, store.SubmissionFilter{BaseName: filepath.ToSlash(filepath.Clean(name))})
	return keysOf(rows), err
}

// didYouMeanInput suggests an input of nearly the name.
func didYouMeanInput(name string, latest []string) string {
	known := make([]string, len(latest))
	for i, n := range latest {
		known[i] = path.Base(filepath.ToSlash(n))
	}
	return didYouMean(path.Base(filepath.ToSlash(shownName(name))), known)
}

// findContent finds the tasks of a file by its content, as far as they were
// enqueued with default parameters: its name may be another one by now.
func (s *session) findContent(ctx context.Context, name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil // no file: not an error, it may be anything
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
		key := tasks.Key(path, in, tasks.Params{})
		st, err := s.store.TaskStatus(ctx, key)
		if err != nil {
			return nil, err
		}
		if st.Known {
			out = append(out, key)
		}
	}
	return out, nil
}

// shownName is what was typed, without a URL's query.
func shownName(name string) string {
	if strings.Contains(name, "://") {
		return tasks.RedactURL(name)
	}
	return printable(name)
}

// payload is the task's payload; false when the store has none that can be
// read. Why it cannot is the worker's to say.
func (s *session) payload(ctx context.Context, key string, path tasks.Path) (p tasks.Payload, ok bool, err error) {
	raw, err := s.store.Payload(ctx, key)
	if errors.Is(err, store.ErrUnknownKey) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	p, err = tasks.Decode(path.Type(), raw)
	return p, err == nil, nil
}
