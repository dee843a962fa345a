package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"reprise/tasks"
)

type overheadSettings struct {
	tasks, warm, rounds, slots int
	profile                    string

	server   *benchRedis
	payloads []tasks.Payload
}

// overheadGroup is the group of all tasks, so that a group's gates are asked too.
const overheadGroup = "bench"

// benchOverhead compares what a worker does around a call with asynq alone. Both
// sides have the same tasks, Redis, queues, interval, slots and number of asynq
// servers. One is a whole worker with every gate, AIMD, breaker and a group, of
// which only the HTTP exchange and SQL are replaced. The handler of the other
// returns at once.
func benchOverhead(ctx context.Context, args []string, out io.Writer) error {
	var set overheadSettings
	flags := newFlags("overhead", out)
	flags.IntVar(&set.tasks, "tasks", 15000, "tasks per side of a round")
	flags.IntVar(&set.warm, "warm", 2000, "of them completed before the measurement starts")
	flags.IntVar(&set.rounds, "rounds", 5, "rounds; the figures are medians")
	flags.IntVar(&set.slots, "slots", 64, "tasks worked on at once")
	flags.StringVar(&set.profile, "profile", "", "write a CPU profile of the last governed side to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if set.rounds < 1 || set.slots < 1 || set.warm < 1 || set.tasks <= set.warm {
		return errors.New("rounds, slots and warm must be positive, and tasks more than warm")
	}
	return inFolder("", func(dir string) (err error) {
		if set.server, err = startRedis(ctx, dir); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, set.server.close()) }()
		if set.payloads, err = urlPayloads(set.tasks); err != nil {
			return err
		}
		return set.compare(ctx, out)
	})
}

func (set *overheadSettings) compare(ctx context.Context, out io.Writer) error {
	var result comparison
	for range set.rounds {
		governed := func() (pace, error) { return set.measure(ctx, governedWorker) }
		bare := func() (pace, error) { return set.measure(ctx, bareAsynq) }
		if err := result.round(governed, bare); err != nil {
			return err
		}
	}
	header := append([]string{"round", "governed/s", "bare asynq/s", "ratio"}, costColumns...)
	if err := printTable(out, header, result.table()); err != nil {
		return err
	}
	governed, bare, ratio := result.medians()
	return printFigures(out, struct {
		Ratio     float64 `json:"ratio"`
		BarePerS  float64 `json:"bare_per_s"`
		GovernedS float64 `json:"governed_per_s"`
	}{ratio, bare, governed})
}

// overheadSide processes tasks, and calls done for each, until its result is called.
type overheadSide func(ctx context.Context, set *overheadSettings, done func()) (stop func() error, err error)

// measure takes the rate from the end of the warm-up to the last task, and the
// CPU time of the whole side, its start included.
func (set *overheadSettings) measure(ctx context.Context, side overheadSide) (pace, error) {
	if err := set.server.fill(ctx, overheadGroup, set.payloads); err != nil {
		return pace{}, err
	}
	runtime.GC()
	own, redis := ownCPU(), set.server.cpu(ctx)
	var count atomic.Int64
	warm, finished := make(chan time.Time, 1), make(chan time.Time, 1)
	stop, err := side(ctx, set, func() {
		switch count.Add(1) {
		case int64(set.warm):
			warm <- time.Now()
		case int64(set.tasks):
			finished <- time.Now()
		}
	})
	if err != nil {
		return pace{}, err
	}
	err = until(ctx, 2*time.Minute, func() bool { return len(finished) > 0 })
	if err != nil {
		err = fmt.Errorf("wait for %d tasks, of which %d are completed: %w", set.tasks, count.Load(), err)
	}
	own, redis = ownCPU()-own, set.server.cpu(ctx)-redis
	if err := errors.Join(err, stop()); err != nil {
		return pace{}, err
	}
	took := (<-finished).Sub(<-warm).Seconds()
	perTask := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(set.tasks) }
	return pace{perS: float64(set.tasks-set.warm) / took, ownUS: perTask(own), redisUS: perTask(redis)}, nil
}

// urlPayloads are tasks with distinct URLs, which need no files.
func urlPayloads(n int) ([]tasks.Payload, error) {
	out := make([]tasks.Payload, n)
	for i := range out {
		p, err := tasks.New(tasks.Recognize, tasks.Input{Kind: tasks.URLInput, URL: fmt.Sprintf("https://bench.example/clip-%06d.mp3", i)}, tasks.Params{}, 0)
		if err != nil {
			return nil, err
		}
		out[i] = p
	}
	return out, nil
}

// startProfile profiles until stop is called. Without a path it does nothing.
func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("start the profile: %w", err), f.Close())
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}
