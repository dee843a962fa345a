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
	fleetFlags

	warmup, retryAfter time.Duration
	parts              string
	dir, binary        string
}

// simAllows is the rate that the simulator admits: the smaller of its rate limit
// and of what its permits allow.
var simAllows = min(simRate, simPermits/simLatency.Seconds())

// benchGoodput counts at the simulator how much of a quota is used: by eight
// worker processes that know the limits, by eight that do not, and by asynq
// alone at three concurrencies, of which the best counts.
func benchGoodput(ctx context.Context, args []string, out io.Writer) error {
	var set goodputSettings
	flags := newFlags("goodput", out)
	set.add(flags, "how long requests are counted")
	flags.DurationVar(&set.warmup, "warmup", 10*time.Second, "how long each part runs before that")
	flags.StringVar(&set.parts, "parts", "reprise,unknown,asynq", "the parts to measure")
	flags.DurationVar(&set.retryAfter, "retry-after", 0, "Retry-After of the simulator's 429s; 0 = none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if set.seconds <= 0 || set.warmup < 0 || set.workers < 1 || set.slots < 1 {
		return errors.New("seconds, workers and slots must be positive, warmup 0 or more")
	}
	return inFolder("", func(dir string) (err error) {
		set.dir = dir
		if set.binary, err = buildWorker(ctx, dir); err != nil {
			return err
		}
		return set.measure(ctx, out)
	})
}

func (set goodputSettings) measure(ctx context.Context, out io.Writer) error {
	var figures struct {
		RepriseRatio    float64 `json:"reprise_ratio"`
		Reprise429      int     `json:"reprise_429"`
		UnknownRatio    float64 `json:"unknown_ratio"`
		Unknown429Share float64 `json:"unknown_429_share"`
		AsynqRatio      float64 `json:"asynq_ratio"`
		Asynq429        int     `json:"asynq_429"`
	}
	var rows [][]string
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
			return err
		}
		ratio := c.perS() / part.allowed
		rows = append(rows, []string{
			part.name, fmt.Sprintf("%.2f", c.perS()), fmt.Sprintf("%.1f", part.allowed), fmt.Sprintf("%.3f", ratio), fmt.Sprint(c.refused), fmt.Sprintf("%.2f %%", 100*c.share()),
		})
		switch {
		case part.part == "reprise":
			figures.RepriseRatio, figures.Reprise429 = ratio, c.refused
		case part.part == "unknown":
			figures.UnknownRatio, figures.Unknown429Share = ratio, c.share()
		case ratio > figures.AsynqRatio:
			figures.AsynqRatio, figures.Asynq429 = ratio, c.refused
		}
	}
	header := []string{"who", "admitted/s", "allowed/s", "ratio", "429s", "share of 429s"}
	if err := printTable(out, header, rows); err != nil {
		return err
	}
	return printFigures(out, figures)
}

// counted are the requests that the simulator saw in the measured time.
type counted struct {
	admitted, refused int
	time              time.Duration
}

func (c counted) perS() float64 { return float64(c.admitted) / c.time.Seconds() }

// share is the share of refused requests; 0 without requests.
func (c counted) share() float64 { return float64(c.refused) / max(float64(c.admitted+c.refused), 1) }

// contestant processes tasks until its result is called.
type contestant func(ctx context.Context, set goodputSettings, r *rig) (stop func() error, err error)

// round gives a contestant a rig of its own and more tasks than can pass. It
// counts after the warm-up, which begins with the first request.
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
	metered := auddsim.Filter{Path: auddsim.PathRecognize}
	if err := until(ctx, time.Minute, func() bool { return len(r.sim.Requests(metered)) > 0 }); err != nil {
		return c, fmt.Errorf("wait for the first request: %w", err)
	}
	from := time.Now().Add(set.warmup)
	to := from.Add(set.seconds)
	if err := pause(ctx, time.Until(to)); err != nil {
		return c, err
	}
	c.time = set.seconds
	for _, request := range r.sim.Requests(metered) {
		switch {
		case request.At.Before(from) || !request.At.Before(to):
		case request.Outcome == auddsim.OutcomeRefused:
			c.refused++
		default:
			c.admitted++
		}
	}
	return c, nil
}
