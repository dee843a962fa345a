package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/ops"
	"reprise/store"
	"reprise/tasks"
)

// filterFlags are the flags that choose tasks.
type filterFlags struct {
	outcome, verdict, path, queue, source, text string
	period                                      periodFlags
	limit                                       int
}

func (f *filterFlags) add(cmd *cobra.Command, limit int) {
	fs := cmd.Flags()
	fs.StringVar(&f.outcome, "outcome", "", "only this outcome, such as quota or input_missing")
	fs.StringVar(&f.path, "path", "", "only recognize, enterprise or upload")
	fs.StringVar(&f.queue, "queue", "", "only this queue, such as recognize.archive")
	fs.StringVar(&f.source, "source", "", "only tasks that were tried on this source")
	fs.StringVar(&f.text, "text", "", "only with this text in the input's name, key or reason")
	f.period.add(cmd, "only tasks that changed", "")
	fs.IntVar(&f.limit, "limit", limit, "at most this many")
}

// filter checks the flags. Unknown words name the nearest known one.
func (f *filterFlags) filter(t text.Times) (store.TaskFilter, error) {
	out := store.TaskFilter{
		Outcome: tasks.Outcome(f.outcome), Verdict: tasks.Verdict(f.verdict), Path: tasks.Path(f.path),
		Queue: f.queue, Source: f.source, Text: f.text, Limit: f.limit,
	}
	var err error
	if out.Since, out.Until, err = f.period.read(t); err != nil {
		return out, err
	}
	return out, ops.CheckFilter(out)
}

// chosen reports whether any flag narrows the choice.
func (f *filterFlags) chosen() bool {
	return f.outcome+f.verdict+f.path+f.queue+f.source+f.text != "" || f.period.chosen()
}

// periodFlags are --since and --until.
type periodFlags struct{ since, until string }

func (f *periodFlags) add(cmd *cobra.Command, what, since string) {
	cmd.Flags().StringVar(&f.since, "since", since, what+" since: 90m, 24h, 7d, or 2026-11-30")
	cmd.Flags().StringVar(&f.until, "until", "", what+" before")
}

func (f *periodFlags) chosen() bool { return f.since+f.until != "" }

func (f *periodFlags) read(t text.Times) (since, until time.Time, err error) {
	if since, err = moment(f.since, t); err != nil {
		return since, until, cli.Errorf(cli.Usage, "--since %w", err)
	}
	if until, err = moment(f.until, t); err != nil {
		return since, until, cli.Errorf(cli.Usage, "--until %w", err)
	}
	return since, until, nil
}

// moment reads a time ago (90m, 24h, 7d) or a date or time; "" is no bound.
func moment(value string, t text.Times) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(value, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return t.Now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return t.Now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, value, t.Zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: expected 90m, 24h, 7d, 2026-11-30 or 2026-11-30T14:00", value)
}
