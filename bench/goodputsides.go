package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hibiken/asynq"

	"reprise/audd"
	"reprise/tasks"
)

// workersWith runs worker processes with further settings.
func workersWith(more ...string) contestant {
	return func(_ context.Context, set goodputSettings, r *rig) (func() error, error) {
		f := r.fleet(set.binary, append([]string{recognizeSlots(set.slots)}, more...)...)
		if err := f.start(set.workers); err != nil {
			f.kill(len(f.workers))
			return nil, err
		}
		return func() error { return errors.Join(f.died(), f.stop()) }, nil
	}
}

// plainAsynq is a typical use of asynq alone: a fixed concurrency, IsFailure for
// 429 so that it costs no attempt, Retry-After honored (1 s without one), and
// due tasks forwarded every second instead of asynq's five.
func plainAsynq(concurrency int) contestant {
	return func(_ context.Context, _ goodputSettings, r *rig) (func() error, error) {
		cfg := audd.DefaultConfig()
		cfg.Token, cfg.BaseURL, cfg.EnterpriseURL = func() string { return "bench-token" }, r.sim.URL+"/", r.sim.EnterpriseURL
		client, err := audd.New(cfg)
		if err != nil {
			return nil, fmt.Errorf("build the client: %w", err)
		}
		srv := asynq.NewServerFromRedisClient(r.redis.rdb, asynq.Config{
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

func fileAudio(in tasks.Input) audd.Audio {
	return audd.Audio{Name: filepath.Base(in.Path), Open: func() (io.ReadCloser, int64, error) {
		f, err := os.Open(in.Path)
		if err != nil {
			return nil, 0, fmt.Errorf("open a clip: %w", err)
		}
		return f, in.Size, nil
	}}
}

func isThrottled(err error) bool {
	failed, ok := errors.AsType[*audd.Error](err)
	return ok && failed.HTTPStatus == 429
}

func plainDelay(n int, err error, t *asynq.Task) time.Duration {
	if failed, ok := errors.AsType[*audd.Error](err); ok && isThrottled(err) {
		return max(time.Second, failed.RetryAfter)
	}
	return asynq.DefaultRetryDelayFunc(n, err, t)
}
