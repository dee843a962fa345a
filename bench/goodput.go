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

	"reprise/internal/auddsim"
)

type goodputSettings struct {
	seconds, warmup time.Duration
	workers, slots  int
	parts           string
	retryAfter      time.Duration
	keep            bool

	dir, binary string
}

// What the simulator allows, and what Reprise is told of it: one per cent less
// than the rate, evenly spaced, so that the two clocks need not agree.
const (
	simRate    = 50.0
	simBurst   = 5
	simPermits = 20
	simLatency = 200 * time.Millisecond
	simJitter  = 0.2
	setRate    = 49.5
)

// simAllows is what the simulator lets pass a second: the less of its rate and
// what fits through its permits.
var simAllows = min(simRate, simPermits/simLatency.Seconds())

// goodputFigures are the case's figures, by the names of the house.
type goodputFigures struct {
	RepriseRatio    float64 `json:"reprise_ratio"`
	Reprise429      int     `json:"reprise_429"`
	UnknownRatio    float64 `json:"unknown_ratio"`
	Unknown429Share float64 `json:"unknown_429_share"`
	AsynqRatio      float64 `json:"asynq_ratio"`
	Asynq429        int     `json:"asynq_429"`
}

// benchGoodput counts at the simulator how much of a quota is used: by eight
// worker processes that know the limits, by eight that do not, and by plain
// asynq at its best of three concurrencies.
func benchGoodput(ctx context.Context, args []string, out io.Writer) (err error) {
	var set goodputSettings
	flags := newFlags("goodput", out)
	flags.DurationVar(&set.seconds, "seconds", time.Minute, "how long is counted")
	flags.DurationVar(&set.warmup, "warmup", 10*time.Second, "how long it runs before that")
	flags.IntVar(&set.workers, "workers", 8, "worker processes")
	flags.IntVar(&set.slots, "slots", 16, "tasks a worker process works on at once")
	flags.StringVar(&set.parts, "parts", "reprise,unknown,asynq", "what is measured")
	flags.DurationVar(&set.retryAfter, "retry-after", 0, "Retry-After of the simulator's 429s; 0 = none")
	flags.BoolVar(&set.keep, "keep", false, "keep the folder with the workers' logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if set.seconds <= 0 || set.warmup < 0 || set.workers < 1 || set.slots < 1 {
		return errors.New("seconds, workers and slots must be positive")
	}
	if set.dir, err = os.MkdirTemp("", "reprise-bench-"); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if set.keep {
		fmt.Fprintln(out, "logs are kept in", set.dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(set.dir)) }()
	}
	if set.binary, err = buildWorker(ctx, set.dir); err != nil {
		return err
	}
	figures, rows, err := goodputParts(ctx, set)
	if err != nil {
		return err
	}
	header := []string{"who", "admitted/s", "allowed/s", "ratio", "429s", "share of 429s"}
	if err := printTable(out, header, rows); err != nil {
		return err
	}
	return printFigures(out, figures)
}

func goodputParts(ctx context.Context, set goodputSettings) (goodputFigures, [][]string, error) {
	var figures goodputFigures
	var rows [][]string
	note := func(who string, c counted, allowed float64) float64 {
		ratio := c.perS() / allowed
		rows = append(rows, []string{
			who, fmt.Sprintf("%.2f", c.perS()), fmt.Sprintf("%.1f", allowed), fmt.Sprintf("%.3f", ratio), fmt.Sprint(c.refused), fmt.Sprintf("%.2f %%", 100*c.share()),
		})
		return ratio
	}
	if strings.Contains(set.parts, "reprise") {
		c, err := goodputRound(ctx, set, "known", workersWith(knownLimits))
		if err != nil {
			return figures, nil, err
		}
		figures.RepriseRatio, figures.Reprise429 = note("reprise, limits set", c, setRate), c.refused
	}
	if strings.Contains(set.parts, "unknown") {
		c, err := goodputRound(ctx, set, "unknown", workersWith(nil))
		if err != nil {
			return figures, nil, err
		}
		figures.UnknownRatio, figures.Unknown429Share = note("reprise, limits unknown", c, simAllows), c.share()
	}
	for _, concurrency := range []int{10, 20, 40} {
		if !strings.Contains(set.parts, "asynq") {
			break
		}
		c, err := goodputRound(ctx, set, fmt.Sprint("asynq-", concurrency), plainAsynq(concurrency))
		if err != nil {
			return figures, nil, err
		}
		ratio := note(fmt.Sprintf("asynq, concurrency %d", concurrency), c, simAllows)
		if ratio > figures.AsynqRatio {
			figures.AsynqRatio, figures.Asynq429 = ratio, c.refused
		}
	}
	return figures, rows, nil
}

// knownLimits tell Reprise what the simulator allows.
var knownLimits = []string{
	fmt.Sprintf("REPRISE_LIMITS_RECOGNIZE_REQUESTS_PER_MINUTE=%.0f", setRate*60),
	"REPRISE_LIMITS_RECOGNIZE_REQUEST_BURST=1",
	fmt.Sprintf("REPRISE_LIMITS_RECOGNIZE_CONCURRENCY=%d", simPermits),
}

// counted is what the simulator saw in the time that counts.
type counted struct {
	admitted, refused int
	time              time.Duration
}

func (c counted) perS() float64 { return float64(c.admitted) / c.time.Seconds() }

func (c counted) share() float64 {
	if c.admitted+c.refused == 0 {
		return 0
	}
	return float64(c.refused) / float64(c.admitted+c.refused)
}

// contestant runs tasks until its result is called.
type contestant func(ctx context.Context, set goodputSettings, redis *benchRedis, sim *auddsim.Server) (stop func() error, err error)

// goodputRound lets a contestant work off more tasks than can pass, on a Redis
// and against a simulator of its own.
func goodputRound(ctx context.Context, set goodputSettings, name string, who contestant) (c counted, err error) {
	set.dir = filepath.Join(set.dir, name)
	if err := os.Mkdir(set.dir, 0o700); err != nil {
		return c, fmt.Errorf("make folder of a round: %w", err)
	}
	server, err := startRedis(ctx, set.dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	sim, err := auddsim.Listen(ctx, "127.0.0.1:0", auddsim.Config{Limits: auddsim.Limits{
		Rate: simRate, Burst: simBurst, Concurrency: simPermits, Latency: simLatency, Jitter: simJitter, RetryAfter: set.retryAfter,
	}})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	payloads, err := clipPayloads(set.dir, int((set.seconds+set.warmup).Seconds()*simRate*1.2)+500)
	if err != nil {
		return c, err
	}
	if err := server.enqueue(ctx, "", payloads); err != nil {
		return c, err
	}
	stop, err := who(ctx, set, server, sim)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return countAt(ctx, set, sim)
}

// countAt waits for the first request, lets the warm-up pass, and counts.
func countAt(ctx context.Context, set goodputSettings, sim *auddsim.Server) (counted, error) {
	metered := auddsim.Filter{Path: auddsim.PathRecognize}
	if err := until(ctx, time.Minute, func() bool { return len(sim.Requests(metered)) > 0 }); err != nil {
		return counted{}, fmt.Errorf("wait for the first request: %w", err)
	}
	from := time.Now().Add(set.warmup)
	to := from.Add(set.seconds)
	if err := pause(ctx, time.Until(to)); err != nil {
		return counted{}, err
	}
	c := counted{time: set.seconds}
	for _, r := range sim.Requests(metered) {
		switch {
		case r.At.Before(from) || !r.At.Before(to):
		case r.Outcome == auddsim.OutcomeRefused:
			c.refused++
		default:
			c.admitted++
		}
	}
	return c, nil
}
