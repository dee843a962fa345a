package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/hibiken/asynq"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

// overheadWeight makes a look into the empty queue rare on both sides.
const overheadWeight = 20

// overheadQueues are the queues of both sides by weight: the path's own, which
// stays empty, and the group's.
var overheadQueues = map[string]int{tasks.Recognize.Queue(""): 1, tasks.Recognize.Queue(overheadGroup): overheadWeight}

func bareAsynq(_ context.Context, set *overheadSettings, done func()) (func() error, error) {
	srv := asynq.NewServerFromRedisClient(set.server.rdb, asynq.Config{
		Concurrency: set.slots, TaskCheckInterval: worker.DefaultOptions().TaskCheckInterval, Queues: overheadQueues, LogLevel: asynq.ErrorLevel,
	})
	handler := func(context.Context, *asynq.Task) error { done(); return nil }
	if err := srv.Start(asynq.HandlerFunc(handler)); err != nil {
		return nil, fmt.Errorf("start asynq: %w", err)
	}
	return func() error { srv.Shutdown(); return nil }, nil
}

// governedWorker is a whole worker. All its gates are configured, with limits
// that never refuse. It formats its log as in production and discards it.
func governedWorker(ctx context.Context, set *overheadSettings, done func()) (func() error, error) {
	o := worker.DefaultOptions()
	o.RedisURL, o.Admin.Addr, o.SkipAuthCheck = set.server.url, "", true
	o.Slots = worker.Slots{Recognize: set.slots}
	o.Sources = []worker.Source{{Name: "main", Token: func() string { return "bench-token" }}}
	o.HTTPClient = &http.Client{Transport: answerAtOnce{}}
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

// answerAtOnce replaces AudD and the network. It reads the request and answers
// that there is no match.
type answerAtOnce struct{}

func (answerAtOnce) RoundTrip(r *http.Request) (*http.Response, error) {
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

// memoryRecords replaces SQL. It knows no task and counts the final verdicts.
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
func (*memoryRecords) Spent(context.Context, store.SpentFilter) (int64, error) { return 0, nil }
func (*memoryRecords) Ping(context.Context) error                              { return nil }
