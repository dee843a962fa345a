package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"reprise/internal/auddsim"
)

// The limits that the simulator enforces, and the rate in the worker's settings. That rate is one per cent
// lower, because the simulator and Redis use different clocks.
const (
	simRate    = 50.0
	simBurst   = 5
	simPermits = 20
	simLatency = 200 * time.Millisecond
	simJitter  = 0.2
	setRate    = 49.5
)

// knownLimits are worker settings that match the simulator's limits.
var knownLimits = []string{
	fmt.Sprintf("REPRISE_LIMITS_RECOGNIZE_REQUESTS_PER_MINUTE=%.0f", setRate*60),
	"REPRISE_LIMITS_RECOGNIZE_REQUEST_BURST=1",
	fmt.Sprintf("REPRISE_LIMITS_RECOGNIZE_CONCURRENCY=%d", simPermits),
}

type fleetFlags struct {
	seconds        time.Duration
	workers, slots int
}

func (f *fleetFlags) add(flags *pflag.FlagSet, seconds string) {
	flags.DurationVar(&f.seconds, "seconds", time.Minute, seconds)
	flags.IntVar(&f.workers, "workers", 8, "worker processes")
	flags.IntVar(&f.slots, "slots", 16, "tasks a worker process works on at once")
}

// rig is a redis-server and a simulator in this process.
type rig struct {
	dir   string
	redis *benchRedis
	sim   *auddsim.Server
}

// startRig keeps the data of Redis in dir.
func startRig(ctx context.Context, dir string, cfg auddsim.Config) (*rig, error) {
	server, err := startRedis(ctx, dir)
	if err != nil {
		return nil, err
	}
	sim, err := auddsim.Listen(ctx, "127.0.0.1:0", cfg)
	if err != nil {
		return nil, errors.Join(err, server.close())
	}
	return &rig{dir, server, sim}, nil
}

// startLimitedRig starts a rig with the limits above and enqueues n clips.
func startLimitedRig(ctx context.Context, dir string, n int, retryAfter time.Duration) (*rig, error) {
	r, err := startRig(ctx, dir, auddsim.Config{Limits: auddsim.Limits{
		Rate: simRate, Burst: simBurst, Concurrency: simPermits, Latency: simLatency, Jitter: simJitter, RetryAfter: retryAfter,
	}})
	if err != nil {
		return nil, err
	}
	payloads, err := clipPayloads(dir, n)
	if err == nil {
		err = r.redis.fill(ctx, "", payloads)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// admitted returns how many requests the limits admitted, including unfinished ones.
func admitted(b auddsim.Bill) int64 { return b.Requests + b.Active - b.Refused }

func (r *rig) close() error { return errors.Join(r.sim.Close(), r.redis.close()) }

func (r *rig) fleet(binary string, more ...string) *fleet {
	return newFleet(binary, r.dir, r.redis.url, r.sim.URL, more...)
}
