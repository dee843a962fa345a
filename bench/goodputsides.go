package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"reprise/audd"
	"reprise/internal/auddsim"
	"reprise/tasks"
)

// workersWith runs worker processes with settings of the case.
func workersWith(more []string) contestant {
	return func(_ context.Context, set goodputSettings, redis *benchRedis, sim *auddsim.Server) (func() error, error) {
		f := newFleet(fleetSettings{dir: set.dir, binary: set.binary, redisURL: redis.url, simURL: sim.URL, slots: set.slots, more: more})
		if err := f.start(set.workers); err != nil {
			f.kill(len(f.workers))
			return nil, err
		}
		return func() error { return errors.Join(f.died(), f.stop()) }, nil
	}
}

// plainAsynq is what one writes with asynq alone: as many calls at once as one
// dares, IsFailure for 429 so that it costs no attempt, the server's
// Retry-After honoured (1 s where it names none), and due tasks looked for
// every second instead of asynq's five.
func plainAsynq(concurrency int) contestant {
	return func(_ context.Context, _ goodputSettings, redis *benchRedis, sim *auddsim.Server) (func() error, error) {
		cfg := audd.DefaultConfig()
		cfg.Token, cfg.BaseURL, cfg.EnterpriseURL = func() string { return "bench-token" }, sim.URL+"/", sim.EnterpriseURL
		client, err := audd.New(cfg)
		if err != nil {
			return nil, fmt.Errorf("build the client: %w", err)
		}
		srv := asynq.NewServerFromRedisClient(redis.rdb, asynq.Config{
			Concurrency: concurrency, Queues: map[string]int{tasks.Recognize.Queue(""): 1}, LogLevel: asynq.ErrorLevel,
			TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: time.Second,
			IsFailure:      func(err error) bool { return !isThrottled(err) },
			RetryDelayFunc: plainDelay,
		})
		handler := func(ctx context.Context, t *asynq.Task) error {
			p, err := tasks.Decode(t.Type(), t.Payload())
			if err != nil {
				return err
			}
			_, err = client.Recognize(ctx, audd.RecognizeRequest{Audio: fileAudio(p.Input)})
			return err
		}
		if err := srv.Start(asynq.HandlerFunc(handler)); err != nil {
			return nil, fmt.Errorf("start asynq: %w", err)
		}
		return func() error { srv.Shutdown(); return nil }, nil
	}
}

func isThrottled(err error) bool {
	var failed *audd.Error
	return errors.As(err, &failed) && failed.HTTPStatus == 429
}

func plainDelay(n int, err error, t *asynq.Task) time.Duration {
	var failed *audd.Error
	if isThrottled(err) && errors.As(err, &failed) {
		return max(time.Second, failed.RetryAfter)
	}
	return asynq.DefaultRetryDelayFunc(n, err, t)
}
