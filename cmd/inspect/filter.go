package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/store"
	"reprise/tasks"
)

// filterFlags are the flags that choose tasks.
type filterFlags struct {
	outcome, verdict, path, queue, source, text string
	since, until                                string
	limit                                       int
}

func (f *filterFlags) add(cmd *cobra.Command, verdict bool, limit int) {
	fs := cmd.Flags()
	fs.StringVar(&f.outcome, "outcome", "", "only this outcome, such as quota or input_missing")
	if verdict {
		fs.StringVar(&f.verdict, "verdict", "", "only done, retry, snooze, archive or hold")
	}
	fs.StringVar(&f.path, "path", "", "only recognize, enterprise or upload")
	fs.StringVar(&f.queue, "queue", "", "only this queue, such as recognize.archive")
	fs.StringVar(&f.source, "source", "", "only what was tried on this source")
	fs.StringVar(&f.text, "text", "", "only with this text in the input's name, key or reason")
	fs.StringVar(&f.since, "since", "", "only what changed since: 90m, 24h, 7d, or 2026-11-30")
	fs.StringVar(&f.until, "until", "", "only what changed before")
	fs.IntVar(&f.limit, "limit", limit, "at most so many")
}

// filter checks the flags. Unknown words name the nearest known one.
func (f *filterFlags) filter(zone *time.Location) (store.TaskFilter, error) {
	out := store.TaskFilter{Queue: f.queue, Source: f.source, Text: f.text, Limit: f.limit}
	var err error
	if out.Outcome, err = word("outcome", f.outcome, tasks.Outcomes); err != nil {
		return out, err
	}
	if out.Verdict, err = word("verdict", f.verdict, tasks.Verdicts); err != nil {
		return out, err
	}
	if out.Path, err = word("path", f.path, tasks.Paths); err != nil {
		return out, err
	}
	if f.queue != "" {
		if _, _, err := tasks.SplitQueue(f.queue); err != nil {
			return out, usage("--queue: %w", err)
		}
	}
	if f.limit < 1 {
		return out, usage("--limit %d: want 1 or more", f.limit)
	}
	if out.Since, err = moment(f.since, zone); err != nil {
		return out, usage("--since %w", err)
	}
	if out.Until, err = moment(f.until, zone); err != nil {
		return out, usage("--until %w", err)
	}
	return out, nil
}

// chosen reports whether any flag narrows the choice.
func (f *filterFlags) chosen() bool {
	return f.outcome+f.verdict+f.path+f.queue+f.source+f.text+f.since+f.until != ""
}

// word is a member of a closed set.
func word[T ~string](flag, value string, known []T) (T, error) {
	if value == "" || slices.Contains(known, T(value)) {
		return T(value), nil
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return "", usage("--%s %s: want one of %s%s", flag, shownName(value), strings.Join(names, ", "), didYouMean(value, names))
}

// moment reads a time ago (90m, 24h, 7d) or a date or time in zone; "" is no
// bound.
func moment(value string, zone *time.Location) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(value, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return time.Now().AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, value, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: want 90m, 24h, 7d, 2026-11-30 or 2026-11-30T14:00", value)
}
