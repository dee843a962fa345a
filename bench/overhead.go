package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/spf13/pflag"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

type overheadSettings struct {
	tasks, warm, rounds, slots int
	profile                    string

	server   *benchRedis
	payloads []tasks.Payload
}

// overheadGroup is the group of all tasks, so that the gates of a group decide too.
const overheadGroup = "bench"

// newOverhead compares what a worker does around a call with asynq alone. The sides have the same tasks,
// Redis, queues, interval, slots and number of asynq servers. The governed side is a whole worker with every
// gate, AIMD, breaker and a group; only the HTTP exchange and SQL are replaced. The handler of the bare side
// returns at once.
func newOverhead(flags *pflag.FlagSet) measurement {
	var set overheadSettings
	flags.IntVar(&set.tasks, "tasks", 15000, "tasks per side of a round")
	flags.IntVar(&set.warm, "warm", 2000, "of them completed before the measurement starts")
	flags.IntVar(&set.rounds, "rounds", 5, "rounds; the figures are medians")
	flags.IntVar(&set.slots, "slots", 64, "tasks worked on at once")
	flags.StringVar(&set.profile, "profile", "", "write a CPU profile of the last governed side to this file")
	return set.compare
}

func (set *overheadSettings) compare(ctx context.Context, dir string) (_ report, err error) {
	if set.tasks <= set.warm {
		return report{}, errors.New("--tasks must be more than --warm")
	}
	if set.server, err = startRedis(ctx, dir); err != nil {
		return report{}, err
	}
	defer func() { err = errors.Join(err, set.server.close()) }()
	if set.payloads, err = urlPayloads(set.tasks); err != nil {
		return report{}, err
	}
	result, err := compare(set.rounds,
		func() (pace, error) { return set.measure(ctx, governedWorker) },
		func() (pace, error) { return set.measure(ctx, bareAsynq) })
	if err != nil {
		return report{}, err
	}
	governed, bare, ratio := result.medians()
	return report{
		header:  append([]string{"round", "governed/s", "bare asynq/s", "ratio"}, costColumns...),
		rows:    result.table(),
		figures: map[string]float64{"ratio": ratio, "bare_per_s": bare, "governed_per_s": governed},
	}, nil
}

// overheadSide starts to process tasks and calls done for each; stop ends it.
type overheadSide func(ctx context.Context, set *overheadSettings, done func()) (stop func() error, err error)

// measure takes the rate from the end of the warm-up to the last task, and the CPU time of the whole side,
// its start included.
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

// overheadWeight is the weight of the group's queue. It makes reads of the empty queue rare on both sides.
const overheadWeight = 20

// overheadQueues are the queues of both sides with their weights: the path's queue, which stays empty, and
// the group's queue.
var overheadQueues = map[string]int{tasks.Recognize.Queue(""): 1, tasks.Recognize.Queue(overheadGroup): overheadWeight}

func bareAsynq(_ context.Context, set *overheadSettings, done func()) (func() error, error) {
	srv := asynq.NewServerFromRedisClient(set.server.rdb, asynq.Config{
		Concurrency: set.slots, TaskCheckInterval: worker.DefaultOptions().TaskCheckInterval, Queues: overheadQueues, LogLevel: asynq.ErrorLevel,
	})
	return startAsynq(srv, func(context.Context, *asynq.Task) error { done(); return nil })
}

// governedWorker runs a whole worker. All its gates are configured, with limits that never refuse. It formats
// its log as in production and discards it.
func governedWorker(ctx context.Context, set *overheadSettings, done func()) (func() error, error) {
	o := worker.DefaultOptions()
	o.RedisURL, o.Admin.Addr, o.SkipAuthCheck = set.server.url, "", true
	o.Slots = worker.Slots{Recognize: set.slots}
	o.Sources = []worker.Source{{Name: "main", Token: func() string { return "bench-token" }}}
	o.Transport = noMatch{}
	o.Log = slog.New(slog.NewJSONHandler(io.Discard, nil)) //nolint:sloglint // formatting a line is part of the overhead
	high := admission.Limits{
		Concurrency: 10_000, RequestsPerMinute: 100_000_000, RequestBurst: 100_000, UnitsPerMinute: 100_000_000, UnitBurst: 100_000,
		UnitsPerDay: 100_000_000, UnitsPerMonth: 100_000_000,
	}
	o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: high}
	o.Admission.Global = high
	o.Admission.AIMD.Start, o.Admission.AIMD.Max = 10_000, 10_000
	o.Admission.Groups = map[string]admission.Group{overheadGroup: {Ceiling: 0.9, UnitsPerDay: 100_000_000, UnitsPerMonth: 100_000_000, Weight: overheadWeight}}
	w, err := worker.New(ctx, o, &memoryRecords{done: done})
	if err != nil {
		return nil, err
	}
	profiled, err := startProfile(set.profile)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	return func() error {
		err := profiled()
		cancel()
		if rerr := <-ended; rerr != nil {
			err = errors.Join(err, fmt.Errorf("run the worker: %w", rerr))
		}
		return errors.Join(err, w.Close())
	}, nil
}

// noMatch replaces AudD and the network. It reads the request and returns a response without a match.
type noMatch struct{}

func (noMatch) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, err := io.Copy(io.Discard, r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(`{"status":"success","result":null}`)),
	}, nil
}

// memoryRecords replaces SQL. It has no task and counts the final verdicts.
type memoryRecords struct {
	worker.Records // the case calls none of its other methods
	done           func()
}

func (m *memoryRecords) Settle(_ context.Context, settled ...store.Settlement) error {
	for _, s := range settled {
		if s.Finished {
			m.done()
		}
	}
	return nil
}

func (*memoryRecords) TaskStatus(context.Context, string) (store.TaskStatus, error) {
	return store.TaskStatus{}, nil
}
func (*memoryRecords) Spent(context.Context, store.CallFilter) (int64, error) { return 0, nil }
func (*memoryRecords) Ping(context.Context) error                             { return nil }
