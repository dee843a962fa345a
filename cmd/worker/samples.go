package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reprise/examples/audio"
	"reprise/intake"
	"reprise/internal/auddsim"
	"reprise/internal/redisconn"
	"reprise/internal/settings"
	"reprise/store"
	"reprise/tasks"
)

// summary is what `worker dev --json` prints.
type summary struct {
	Enqueued    int     `json:"enqueued"`
	Matched     int     `json:"matched"`
	NoMatch     int     `json:"no_match"`
	Archived    int     `json:"archived"`
	Calls       int64   `json:"calls"`
	BilledUnits int64   `json:"billed_units"`
	Seconds     float64 `json:"seconds"`
}

// demoTimeout bounds the wait for the samples' results.
const demoTimeout = 2 * time.Minute

// demonstrate enqueues the samples, prints their results and a summary, and
// then stays up unless told to exit.
func (a app) demonstrate(ctx context.Context, h *house, f devFlags, ended <-chan error) error {
	if err := waitUp(ctx, h, ended); err != nil {
		return err
	}
	if err := h.announce(); err != nil {
		return err
	}
	defer settings.RemoveAddresses(h.dir) //nolint:errcheck // a stale file names a dead process and is ignored
	say := func(format string, args ...any) {
		if !f.json {
			fmt.Fprintf(a.stdout, format+"\n", args...)
		}
	}
	a.introduce(h, say)
	sum, err := h.runSamples(ctx, say)
	if err != nil {
		return err
	}
	if f.json {
		if err := json.NewEncoder(a.stdout).Encode(sum); err != nil {
			return fmt.Errorf("print the summary: %w", err)
		}
	}
	say("\n%d enqueued: %d matched, %d no match, %d archived. %d calls, %d units billed, %.1f s.",
		sum.Enqueued, sum.Matched, sum.NoMatch, sum.Archived, sum.Calls, sum.BilledUnits, sum.Seconds)
	if f.exit {
		return nil
	}
	say("\nUp. Web UI: %s   Enqueue: go run ./cmd/enqueue recognize FILE --wait   Stop: Ctrl-C", h.uiURL())
	select {
	case <-ctx.Done():
		return nil
	case <-h.redis.Done():
		return errors.New("the embedded Redis ended by itself; see redis.log in the data folder")
	}
}

func (a app) introduce(h *house, say func(string, ...any)) {
	upstream := "AudD (billed)"
	if h.sim != nil {
		upstream = "simulator at " + h.sim.URL + " (costs nothing)"
	}
	say("Redis     %s", h.redis.Note)
	say("AudD      %s", upstream)
	say("Web UI    %s", h.uiURL())
	say("Data      %s\n", h.dir)
}

// waitUp waits until the worker has its admin listener, or has ended.
func waitUp(ctx context.Context, h *house, ended <-chan error) error {
	select {
	case <-h.worker.Ready():
		return nil
	case err := <-ended:
		if err == nil {
			err = errors.New("the worker ended before it was up")
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

// runSamples enqueues the clips of examples/audio and waits for their results.
// Against the simulator they are run anew each time; AudD is asked once.
func (h *house) runSamples(ctx context.Context, say func(string, ...any)) (summary, error) {
	var sum summary
	start := time.Now()
	rdb, err := redisconn.Queue(h.redis.URL, 4)
	if err != nil {
		return sum, err
	}
	defer rdb.Close() // nothing is in flight any more
	in, err := intake.New(intake.Options{Redis: rdb, Store: h.records})
	if err != nil {
		return sum, err
	}
	files, err := unpack(filepath.Join(h.dir, "samples"))
	if err != nil {
		return sum, err
	}
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	var plans []*intake.Plan
	for path, names := range files {
		plan, err := in.Plan(ctx, intake.Request{Path: path, Force: h.sim != nil}, names, nil)
		if err != nil {
			return sum, err
		}
		if err := in.Enqueue(ctx, plan, nil); err != nil {
			return sum, err
		}
		sum.Enqueued += len(plan.Items)
		plans = append(plans, plan)
	}
	for _, plan := range plans {
		err := in.Wait(ctx, plan, func(r intake.Result) { sum.add(r); say("%s", line(r)) })
		if err != nil {
			return sum, err
		}
	}
	sum.Seconds = time.Since(start).Round(10 * time.Millisecond).Seconds()
	return sum, h.bill(ctx, start, &sum)
}

// bill counts calls and units: the simulator's own bill, or what the call rows
// say when AudD was asked.
func (h *house) bill(ctx context.Context, start time.Time, sum *summary) error {
	if h.sim != nil {
		b := h.sim.Bill()
		sum.BilledUnits = b.Units
		for _, c := range b.Contents {
			if c.Path != auddsim.PathStreams { // the token check is no call of a task
				sum.Calls += c.Requests
			}
		}
		return nil
	}
	calls, err := h.records.Calls(ctx, store.CallFilter{Since: start})
	if err != nil {
		return err
	}
	for _, c := range calls {
		sum.Calls++
		sum.BilledUnits += c.Units
	}
	return nil
}

func (s *summary) add(r intake.Result) {
	switch {
	case r.Verdict != tasks.Done:
		s.Archived++
	case r.Outcome == tasks.Match:
		s.Matched++
	default:
		s.NoMatch++
	}
}

// line is a result for people.
func line(r intake.Result) string {
	name := filepath.Base(r.Name)
	if r.Verdict != tasks.Done {
		return fmt.Sprintf("%-10s %-24s %s", r.Verdict, name, r.Reason)
	}
	return fmt.Sprintf("%-10s %-24s %s", strings.ReplaceAll(string(r.Outcome), "_", " "), name, title(r.Result))
}

// unpack writes the embedded clips into a folder, by path: what is long goes
// to enterprise.
func unpack(dir string) (map[tasks.Path][]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the samples' folder: %w", err)
	}
	entries, err := fs.ReadDir(audio.Files, ".")
	if err != nil {
		return nil, fmt.Errorf("list the samples: %w", err)
	}
	out := map[tasks.Path][]string{}
	for _, e := range entries {
		raw, err := fs.ReadFile(audio.Files, e.Name())
		if err != nil {
			return nil, fmt.Errorf("read a sample: %w", err)
		}
		file := filepath.Join(dir, e.Name())
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			return nil, fmt.Errorf("unpack a sample: %w", err)
		}
		path := tasks.Recognize
		if strings.HasPrefix(e.Name(), "long") {
			path = tasks.Enterprise
		}
		out[path] = append(out[path], file)
	}
	return out, nil
}
