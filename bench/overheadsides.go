package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

// finishLine counts finished tasks and takes the time from the end of the
// warm-up to the last one.
type finishLine struct {
	done        atomic.Int64
	warm, all   int64
	begun, over time.Time
	finished    chan struct{}
}

func newFinishLine(warm, all int) *finishLine {
	return &finishLine{warm: int64(warm), all: int64(all), finished: make(chan struct{})}
}

func (f *finishLine) pass() {
	switch f.done.Add(1) {
	case f.warm:
		f.begun = time.Now()
	case f.all:
		f.over = time.Now()
		close(f.finished)
	}
}

func (f *finishLine) wait(ctx context.Context, within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-f.finished:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("only %d of %d tasks were done within %s", f.done.Load(), f.all, within)
	}
}

func (f *finishLine) rate() float64 { return float64(f.all-f.warm) / f.over.Sub(f.begun).Seconds() }

// overheadQueues are the queues both sides serve, by weight: the path's own,
// which stays empty, and the group's.
var overheadQueues = map[string]int{tasks.Recognize.Queue(""): 1, tasks.Recognize.Queue(overheadGroup): overheadWeight}

// overheadWeight makes looking into the empty queue rare on both sides.
const overheadWeight = 20

// bareAsynq is stock asynq with a handler that returns at once.
func bareAsynq(_ context.Context, set overheadSettings, server *benchRedis, line *finishLine) (func() error, error) {
	var servers []*asynq.Server
	stop := func() error {
		for _, s := range servers {
			s.Shutdown()
		}
		return nil
	}
	for n := range set.servers {
		slots := set.slots / set.servers
		if n < set.slots%set.servers {
			slots++
		}
		srv := asynq.NewServerFromRedisClient(server.rdb, asynq.Config{
			Concurrency: slots, TaskCheckInterval: set.check, Queues: overheadQueues, LogLevel: asynq.ErrorLevel,
		})
		err := srv.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			line.pass()
			return nil
		}))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start asynq: %w", err), stop())
		}
		servers = append(servers, srv)
	}
	return stop, nil
}

// governedWorker is a whole worker. Its gates are all on and set too high to
// refuse; it writes its log as in production, to nowhere.
func governedWorker(ctx context.Context, set overheadSettings, server *benchRedis, line *finishLine) (func() error, error) {
	o := worker.DefaultOptions()
	o.RedisURL, o.Admin.Addr, o.SkipAuthCheck = server.url, "", true
	o.Slots = worker.Slots{Recognize: set.slots}
	o.TaskCheckInterval = set.check
	o.Sources = []worker.Source{{Name: "main", Token: func() string { return "bench-token" }}}
	o.HTTPClient = &http.Client{Transport: answerAtOnce{}}
	o.Log = slog.New(slog.NewJSONHandler(io.Discard, nil)) //nolint:sloglint // what writing a line costs belongs to the overhead
	high := admission.Limits{
		Concurrency: 10_000, RequestsPerMinute: 100_000_000, RequestBurst: 100_000, UnitsPerMinute: 100_000_000, UnitBurst: 100_000,
		UnitsPerDay: 100_000_000, UnitsPerMonth: 100_000_000,
	}
	o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: high}
	o.Admission.Global = high
	o.Admission.AIMD.Start = 10_000
	o.Admission.AIMD.Max = 10_000
	o.Admission.Groups = map[string]admission.Group{overheadGroup: {Ceiling: 0.9, UnitsPerDay: 100_000_000, UnitsPerMonth: 100_000_000, Weight: overheadWeight}}
	w, err := worker.New(ctx, o, &memoryRecords{line: line})
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	profiled, err := startProfile(set.profile)
	if err != nil {
		cancel()
		return nil, errors.Join(err, w.Close())
	}
	go func() { ended <- w.Run(running) }()
	return func() error {
		if err := profiled(); err != nil {
			return err
		}
		cancel()
		if err := <-ended; err != nil {
			return fmt.Errorf("run the worker: %w", err)
		}
		return w.Close()
	}, nil
}

// answerAtOnce stands for AudD and the network: it reads the request and has
// no match for it.
type answerAtOnce struct{}

func (answerAtOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, err := io.Copy(io.Discard, r.Body)
		if cerr := r.Body.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(`{"status":"success","result":null}`)),
	}, nil
}

// memoryRecords stands for SQL, which the case leaves out: it knows no task
// and only counts the verdicts.
type memoryRecords struct {
	worker.Records // what the case never calls
	line           *finishLine
}

func (m *memoryRecords) Settle(_ context.Context, settled ...store.Settlement) error {
	for _, s := range settled {
		if s.Finished {
			m.line.pass()
		}
	}
	return nil
}

func (*memoryRecords) TaskStatus(context.Context, string) (store.TaskStatus, error) {
	return store.TaskStatus{}, nil
}
func (*memoryRecords) Spent(context.Context, store.SpentFilter) (int64, error) { return 0, nil }
func (*memoryRecords) Ping(context.Context) error                              { return nil }
