package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"reprise/tasks"
)

type overheadSettings struct {
	tasks, warm, rounds, slots, servers int
	check                               time.Duration
	profile                             string
}

// overheadGroup pays for every task of the case: its gates are asked too.
const overheadGroup = "bench"

// benchOverhead compares what a worker does around a call with asynq's bare
// minimum: the same tasks on the same Redis, queues, interval and slots, once
// through worker.handle with every gate, AIMD, breaker and a group on and only
// the HTTP exchange replaced, once through a handler that returns at once.
func benchOverhead(ctx context.Context, args []string, out io.Writer) (err error) {
	var set overheadSettings
	flags := newFlags("overhead", out)
	flags.IntVar(&set.tasks, "tasks", 15000, "tasks a round")
	flags.IntVar(&set.warm, "warm", 2000, "of them done before the clock starts")
	flags.IntVar(&set.rounds, "rounds", 5, "rounds of each kind, in turn; the median counts")
	flags.IntVar(&set.slots, "slots", 64, "tasks worked on at once")
	flags.IntVar(&set.servers, "bare-servers", 1, "asynq servers that share the slots of the bare side")
	flags.DurationVar(&set.check, "check", 20*time.Millisecond, "asynq's TaskCheckInterval")
	flags.StringVar(&set.profile, "profile", "", "write a CPU profile of the last governed round to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if set.rounds < 1 || set.servers < 1 || set.slots < set.servers || set.warm < 1 || set.tasks <= set.warm {
		return errors.New("rounds, bare-servers and warm must be positive, slots at least bare-servers and tasks more than warm")
	}
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := startRedis(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	payloads, err := urlPayloads(set.tasks)
	if err != nil {
		return err
	}
	return overheadRounds(ctx, set, server, payloads, out)
}

func overheadRounds(ctx context.Context, set overheadSettings, server *benchRedis, payloads []tasks.Payload, out io.Writer) error {
	var rows [][]string
	var bares, governeds, ratios []float64
	for n := range set.rounds {
		bare, err := overheadRound(ctx, set, server, payloads, bareAsynq)
		if err != nil {
			return err
		}
		governed, err := overheadRound(ctx, set, server, payloads, governedWorker)
		if err != nil {
			return err
		}
		bares, governeds, ratios = append(bares, bare.perS), append(governeds, governed.perS), append(ratios, governed.perS/bare.perS)
		rows = append(rows, overheadRow(n, governed, bare))
	}
	// The ratio is the median of the rounds' ratios: the two halves of a round
	// met the same load on the machine.
	bare, governed, ratio := median(bares), median(governeds), median(ratios)
	rows = append(rows, storeRow("median", governed, bare, ratio))
	header := []string{"round", "governed/s", "bare asynq/s", "ratio", "µs of CPU a task: governed", "its redis", "bare", "its redis"}
	if err := printTable(out, header, rows); err != nil {
		return err
	}
	return printFigures(out, struct {
		Ratio     float64 `json:"ratio"`
		BarePerS  float64 `json:"bare_per_s"`
		GovernedS float64 `json:"governed_per_s"`
	}{ratio, bare, governed})
}

func overheadRow(n int, governed, bare pace) []string {
	row := storeRow(fmt.Sprint(n+1), governed.perS, bare.perS, governed.perS/bare.perS)
	for _, us := range []float64{governed.ownUS, governed.redisUS, bare.ownUS, bare.redisUS} {
		row = append(row, fmt.Sprintf("%.0f", us))
	}
	return row
}

// pace is how fast a round went and what it cost. The costs are of the whole
// round, start and end included; unlike the rate they hardly depend on what
// else the machine does.
type pace struct{ perS, ownUS, redisUS float64 }

// overheadRound enqueues all tasks, then lets a contestant work them off. It
// measures from the end of the warm-up to the last task.
func overheadRound(ctx context.Context, set overheadSettings, server *benchRedis, payloads []tasks.Payload,
	contestant func(context.Context, overheadSettings, *benchRedis, *finishLine) (func() error, error)) (pace, error) {
	if err := server.empty(ctx); err != nil {
		return pace{}, err
	}
	if err := server.enqueue(ctx, overheadGroup, payloads); err != nil {
		return pace{}, err
	}
	runtime.GC()
	own, theirs := ownCPU(), server.cpu(ctx)
	line := newFinishLine(set.warm, set.tasks)
	stop, err := contestant(ctx, set, server, line)
	if err != nil {
		return pace{}, err
	}
	err = line.wait(ctx, 2*time.Minute)
	own, theirs = ownCPU()-own, server.cpu(ctx)-theirs
	if err := errors.Join(err, stop()); err != nil {
		return pace{}, err
	}
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(set.tasks) }
	return pace{perS: line.rate(), ownUS: each(own), redisUS: each(theirs)}, nil
}

// urlPayloads are tasks of distinct URLs: nothing has to be on disk.
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

// startProfile profiles until stop is called; without a path it does nothing.
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
