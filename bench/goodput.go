package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/spf13/pflag"

	"reprise/audd"
	"reprise/internal/timer"
	"reprise/tasks"
)

type goodputSettings struct {
	fleetFlags

	warmup, retryAfter time.Duration
	parts              string
	dir, binary        string
}

// simAllows is the rate that the simulator admits: its rate limit, or less if its permits allow less.
var simAllows = min(simRate, simPermits/simLatency.Seconds())

// newGoodput measures at the simulator how much of a quota is used: by eight worker processes with the limits
// in their settings, by eight without them, and by asynq alone at three concurrencies, of which the best
// counts.
func newGoodput(flags *pflag.FlagSet) measurement {
	var set goodputSettings
	set.add(flags, "how long requests are counted")
	flags.DurationVar(&set.warmup, "warmup", 10*time.Second, "how long each part runs before that")
	flags.StringVar(&set.parts, "parts", "reprise,unknown,asynq", "the parts to measure")
	flags.DurationVar(&set.retryAfter, "retry-after", 0, "Retry-After of the simulator's 429s; 0 = none")
	return func(ctx context.Context, dir string) (_ report, err error) {
		set.dir = dir
		if set.binary, err = buildWorker(ctx, dir); err != nil {
			return report{}, err
		}
		return set.measure(ctx)
	}
}

func (set goodputSettings) measure(ctx context.Context) (report, error) {
	r := report{header: []string{"who", "admitted/s", "allowed/s", "ratio", "429s", "share of 429s"}, figures: map[string]float64{}}
	for _, part := range []struct {
		part, name string
		allowed    float64
		who        contestant
	}{
		{"reprise", "reprise, limits set", setRate, workersWith(knownLimits...)},
		{"unknown", "reprise, limits unknown", simAllows, workersWith()},
		{"asynq", "asynq, concurrency 10", simAllows, plainAsynq(10)},
		{"asynq", "asynq, concurrency 20", simAllows, plainAsynq(20)},
		{"asynq", "asynq, concurrency 40", simAllows, plainAsynq(40)},
	} {
		if !strings.Contains(set.parts, part.part) {
			continue
		}
		c, err := set.round(ctx, strings.ReplaceAll(part.name, " ", "-"), part.who)
		if err != nil {
			return report{}, err
		}
		ratio := c.perS() / part.allowed
		r.rows = append(r.rows, []string{
			part.name, fmt.Sprintf("%.2f", c.perS()), fmt.Sprintf("%.1f", part.allowed), fmt.Sprintf("%.3f", ratio), fmt.Sprint(c.refused), fmt.Sprintf("%.2f %%", 100*c.share()),
		})
		name := part.part + "_ratio"
		if best, measured := r.figures[name]; measured && best >= ratio {
			continue
		}
		r.figures[name] = ratio
		if part.part == "unknown" {
			r.figures["unknown_429_share"] = c.share()
		} else {
			r.figures[part.part+"_429"] = float64(c.refused)
		}
	}
	return r, nil
}

// counted are the requests that the simulator saw in the measured time.
type counted struct {
	admitted, refused int64
	time              time.Duration
}

func (c counted) perS() float64 { return float64(c.admitted) / c.time.Seconds() }

// share is the share of refused requests; 0 without requests.
func (c counted) share() float64 { return float64(c.refused) / max(float64(c.admitted+c.refused), 1) }

// contestant starts to process tasks; stop ends it.
type contestant func(ctx context.Context, set goodputSettings, r *rig) (stop func() error, err error)

// round gives a contestant its own rig and more tasks than the simulator admits. It counts after the warm-up,
// which begins with the first request.
func (set goodputSettings) round(ctx context.Context, name string, who contestant) (c counted, err error) {
	dir := filepath.Join(set.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return c, fmt.Errorf("make folder of a round: %w", err)
	}
	r, err := startLimitedRig(ctx, dir, int((set.seconds+set.warmup).Seconds()*simRate*1.2)+500, set.retryAfter)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	stop, err := who(ctx, set, r)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := until(ctx, time.Minute, func() bool { return admitted(r.sim.Sums()) > 0 }); err != nil {
		return c, fmt.Errorf("wait for the first request: %w", err)
	}
	if err := timer.Wait(ctx, set.warmup); err != nil {
		return c, err
	}
	start, before := time.Now(), r.sim.Sums()
	if err := timer.Wait(ctx, set.seconds); err != nil {
		return c, err
	}
	after := r.sim.Sums()
	return counted{admitted(after) - admitted(before), after.Refused - before.Refused, time.Since(start)}, nil
}

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

// plainAsynq runs asynq as it is typically used alone: a fixed concurrency, 429s that use no attempt
// (IsFailure), retries after Retry-After (1 s without one), and due tasks forwarded every second instead of
// every five.
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
		return serveAsynq(srv, func(ctx context.Context, p tasks.Payload) error {
			_, err := client.Recognize(ctx, audd.RecognizeRequest{Audio: fileAudio(p.Input)})
			return err
		})
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
