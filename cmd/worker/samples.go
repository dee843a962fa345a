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
	"reprise/internal/text"
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

// demoTimeout bounds the wait for the results of the samples.
const demoTimeout = 2 * time.Minute

// demonstrate enqueues the samples and prints their results and a summary. Then it waits for the end, unless
// f.exit is set.
func (a app) demonstrate(ctx context.Context, d *devStack, f devFlags, ended <-chan error) error {
	if err := waitReady(ctx, d, ended); err != nil {
		return err
	}
	if err := d.announce(); err != nil {
		return err
	}
	defer settings.RemoveAddresses(d.dir) //nolint:errcheck // a file that stays names a process that has ended, and is ignored
	printf := func(format string, args ...any) {
		if !f.json {
			fmt.Fprintf(a.Out, format+"\n", args...)
		}
	}
	d.introduce(printf)
	sum, err := d.runSamples(ctx, printf)
	if err != nil {
		return err
	}
	if f.json {
		if err := json.NewEncoder(a.Out).Encode(sum); err != nil {
			return fmt.Errorf("print the summary: %w", err)
		}
	}
	printf("\n%d enqueued: %d matched, %d no match, %d archived. %d calls, %d units billed, %.1f s.",
		sum.Enqueued, sum.Matched, sum.NoMatch, sum.Archived, sum.Calls, sum.BilledUnits, sum.Seconds)
	if f.exit {
		return nil
	}
	printf("\nUp. Web UI: %s   Enqueue: go run ./cmd/enqueue recognize FILE --wait   Stop: Ctrl-C", d.uiURL())
	select {
	case <-ctx.Done():
		return nil
	case <-d.redis.Done():
		return errors.New("the embedded Redis exited unexpectedly; see redis.log in the data folder")
	}
}

func (d *devStack) introduce(printf func(string, ...any)) {
	upstream := "AudD (billed)"
	if d.sim != nil {
		upstream = "simulator at " + d.sim.URL + " (nothing is billed)"
	}
	printf("Redis     %s", d.redis.Note)
	printf("AudD      %s", upstream)
	printf("Web UI    %s", d.uiURL())
	printf("Data      %s\n", d.dir)
}

// waitReady waits until the worker is ready or has ended.
func waitReady(ctx context.Context, d *devStack, ended <-chan error) error {
	select {
	case <-d.worker.Ready():
		return nil
	case err := <-ended:
		if err == nil {
			err = errors.New("the worker exited before it was ready")
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

// runSamples enqueues the clips of examples/audio and waits for their results. The simulator recognizes them at
// every start, AudD only once.
func (d *devStack) runSamples(ctx context.Context, printf func(string, ...any)) (summary, error) {
	var sum summary
	start := time.Now()
	rdb, err := redisconn.Queue(d.redis.URL, 4)
	if err != nil {
		return sum, err
	}
	defer rdb.Close() // it is idle
	in, err := intake.New(intake.Options{Redis: rdb, Store: d.records})
	if err != nil {
		return sum, err
	}
	files, err := unpack(filepath.Join(d.dir, "samples"))
	if err != nil {
		return sum, err
	}
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	var plans []*intake.Plan
	for path, names := range files {
		plan, err := in.Plan(ctx, intake.Request{Path: path, Force: d.sim != nil}, names, nil)
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
		err := in.Wait(ctx, plan, func(r intake.Result) { sum.add(r); printf("%s", line(r)) })
		if err != nil {
			return sum, err
		}
	}
	sum.Seconds = time.Since(start).Round(10 * time.Millisecond).Seconds()
	return sum, d.bill(ctx, start, &sum)
}

// bill counts calls and units, from the simulator's bill or, with AudD, from the call rows.
func (d *devStack) bill(ctx context.Context, start time.Time, sum *summary) error {
	if d.sim != nil {
		b := d.sim.Bill()
		sum.BilledUnits = b.Units
		for _, c := range b.Contents {
			if c.Path != auddsim.PathStreams { // token checks are not calls of a task
				sum.Calls += c.Requests
			}
		}
		return nil
	}
	calls, err := d.records.Calls(ctx, store.CallFilter{Since: start})
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

// line returns a result as one line.
func line(r intake.Result) string {
	name := filepath.Base(r.Name)
	if r.Verdict != tasks.Done {
		return fmt.Sprintf("%-10s %-24s %s", r.Verdict, name, r.Reason)
	}
	return fmt.Sprintf("%-10s %-24s %s", strings.ReplaceAll(string(r.Outcome), "_", " "), name, text.Song(r.Result))
}

// unpack writes the embedded clips to a folder and returns their files by path. Long recordings are for
// enterprise.
func unpack(dir string) (map[tasks.Path][]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the samples folder: %w", err)
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
