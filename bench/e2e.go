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

	"reprise/tasks"
)

type e2eSettings struct {
	rounds, slots int
	seconds       time.Duration
	latencies     string
	worker        string // path of cmd/worker

	dir     string
	server  *benchRedis
	clips   []tasks.Payload
	started int // sides so far, for the names of their folders
}

// e2eMaxRate is the rate, in tasks a second, up to which the queue does not run
// dry while one side is measured.
const e2eMaxRate = 6000

// benchE2E compares whole processes: files in, HTTP calls to a simulator
// process, results in SQLite. The bare side is an asynq server in a process of
// its own whose handler makes the same call and stores nothing.
func benchE2E(ctx context.Context, args []string, out io.Writer) (err error) {
	var set e2eSettings
	flags := newFlags("e2e", out)
	flags.IntVar(&set.rounds, "rounds", 5, "rounds per latency; the figures are medians")
	flags.DurationVar(&set.seconds, "seconds", 10*time.Second, "how long each side of a round is measured, from its first task on")
	flags.IntVar(&set.slots, "slots", 64, "tasks each side works on at once")
	flags.StringVar(&set.latencies, "latencies", "0ms,20ms,200ms", "latencies of the simulated API")
	flags.StringVar(&set.worker, "worker", "", "worker binary to measure, for comparing versions; empty = the one of this checkout")
	if err := flags.Parse(args); err != nil {
		return err
	}
	latencies, err := durations(set.latencies)
	if err != nil {
		return err
	}
	if set.rounds < 1 || set.slots < 1 || set.seconds <= 0 {
		return errors.New("rounds, slots and seconds must be positive")
	}
	if set.dir, err = os.MkdirTemp("", "reprise-bench-"); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(set.dir)) }()
	commands := []string{"cmd/auddsim", "bench"}
	if set.worker == "" {
		set.worker, commands = filepath.Join(set.dir, "worker"), append(commands, "cmd/worker")
	}
	if err := build(ctx, set.dir, commands...); err != nil {
		return err
	}
	if set.server, err = startRedis(ctx, set.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.server.close()) }()
	need := 0
	for _, latency := range latencies {
		need = max(need, set.tasks(latency))
	}
	if set.clips, err = clipPayloads(set.dir, need); err != nil {
		return err
	}
	return e2eRounds(ctx, &set, latencies, out)
}

func durations(list string) ([]time.Duration, error) {
	var out []time.Duration
	for text := range strings.SplitSeq(list, ",") {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return nil, fmt.Errorf("latency %q is not a duration of 0 or more", text)
		}
		out = append(out, d)
	}
	return out, nil
}

// tasks is how many tasks are enqueued for one side: more than the slots can
// complete, so that the queue does not run dry.
func (set *e2eSettings) tasks(latency time.Duration) int {
	rate := float64(e2eMaxRate)
	if latency > 0 {
		rate = min(rate, float64(set.slots)/latency.Seconds())
	}
	return int(rate*set.seconds.Seconds()) + 2*set.slots
}

// e2eRounds alternates the latencies, and within each the sides and which of
// them goes first, so that other load on the machine meets all of them alike.
// The ratio is the median of the rounds' ratios.
func e2eRounds(ctx context.Context, set *e2eSettings, latencies []time.Duration, out io.Writer) error {
	ours, bare, ratio := map[time.Duration][]float64{}, map[time.Duration][]float64{}, map[time.Duration][]float64{}
	var rows [][]string
	for round := range set.rounds {
		for _, latency := range latencies {
			order := []e2eSide{startReprise, startBareProcess}
			if round%2 == 1 {
				order = []e2eSide{startBareProcess, startReprise}
			}
			var paces [2]e2ePace
			for i, side := range order {
				pace, err := e2eRun(ctx, set, latency, side)
				if err != nil {
					return err
				}
				paces[(i+round)%2] = pace
			}
			r, b := paces[0], paces[1]
			ours[latency], bare[latency] = append(ours[latency], r.perS), append(bare[latency], b.perS)
			ratio[latency] = append(ratio[latency], r.perS/b.perS)
			costs := fmt.Sprintf("%.0f + %.0f\t%.0f + %.0f\t%s", r.workerUS, r.redisUS, b.workerUS, b.redisUS, loadAverage())
			rows = append(rows, append(e2eRow(fmt.Sprint(round+1), latency, r.perS, b.perS, r.perS/b.perS), costs))
		}
	}
	figures := map[string]float64{}
	for _, latency := range latencies {
		name := fmt.Sprintf("%dms_", latency.Milliseconds())
		r, b, share := median(ours[latency]), median(bare[latency]), median(ratio[latency])
		rows = append(rows, e2eRow("median", latency, r, b, share))
		figures["ratio_"+strings.TrimSuffix(name, "_")] = share
		if latency == 0 {
			name = ""
		}
		figures["reprise_"+name+"per_s"], figures["bare_"+name+"per_s"] = r, b
	}
	header := []string{"round", "latency", "reprise/s", "bare asynq/s", "ratio", "µs of CPU a task: reprise + its redis", "bare + its redis", "load"}
	if err := printTable(out, header, rows); err != nil {
		return err
	}
	return printFigures(out, figures)
}

func e2eRow(round string, latency time.Duration, reprise, bare, ratio float64) []string {
	return []string{round, latency.String(), fmt.Sprintf("%.0f", reprise), fmt.Sprintf("%.0f", bare), fmt.Sprintf("%.3f", ratio)}
}

// e2ePace is the rate of one side, and its CPU time per task in microseconds,
// which depends less on other load than the rate.
type e2ePace struct{ perS, workerUS, redisUS float64 }

// e2eSide starts the process of one side in a folder of its own.
type e2eSide func(set *e2eSettings, dir, simURL string) (*proc, error)

func startReprise(set *e2eSettings, dir, simURL string) (*proc, error) {
	f := newFleet(fleetSettings{dir: dir, binary: set.worker, redisURL: set.server.url, simURL: simURL, slots: set.slots})
	if err := f.start(1); err != nil {
		return nil, err
	}
	return f.workers[0], nil
}

func startBareProcess(set *e2eSettings, dir, simURL string) (*proc, error) {
	return startProc(filepath.Join(dir, "bare.log"), nil, filepath.Join(set.dir, "bench"),
		"e2e-bare", "--redis="+set.server.rdb.Options().Addr, "--url="+simURL+"/", fmt.Sprintf("--slots=%d", set.slots))
}

// e2eRun measures one side with an empty Redis, a new simulator process and a
// new SQLite file.
func e2eRun(ctx context.Context, set *e2eSettings, latency time.Duration, side e2eSide) (pace e2ePace, err error) {
	set.started++
	dir := filepath.Join(set.dir, fmt.Sprint("side-", set.started))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return pace, fmt.Errorf("make folder of a side: %w", err)
	}
	addr, err := freeAddr()
	if err != nil {
		return pace, err
	}
	sim, err := startProc(filepath.Join(dir, "auddsim.log"), nil, filepath.Join(set.dir, "auddsim"), "--addr="+addr, "--log-size=1000", "--latency="+latency.String())
	if err != nil {
		return pace, err
	}
	defer sim.kill()
	if err := sim.logs(ctx, addr); err != nil {
		return pace, err
	}
	if err := set.server.empty(ctx); err != nil {
		return pace, err
	}
	if err := set.server.enqueue(ctx, "", set.clips[:set.tasks(latency)]); err != nil {
		return pace, err
	}
	p, err := side(set, dir, "http://"+addr)
	if err != nil {
		return pace, err
	}
	defer p.kill()
	return e2eMeasure(ctx, set, p)
}

// e2eMeasure counts completed tasks from the moment the first task is active.
func e2eMeasure(ctx context.Context, set *e2eSettings, p *proc) (e2ePace, error) {
	inspector := asynq.NewInspectorFromRedisClient(set.server.rdb)
	var info *asynq.QueueInfo
	var failed error
	begun := func() bool {
		info, failed = inspector.GetQueueInfo(tasks.Recognize.Queue(""))
		return failed != nil || p.died() != nil || info.Active+info.Completed > 0
	}
	err := until(ctx, processStart, begun)
	if err := errors.Join(err, failed, p.died()); err != nil {
		return e2ePace{}, fmt.Errorf("wait for the first task: %w", err)
	}
	start, done, own, redis := time.Now(), info.Completed, p.cpu(), set.server.cpu(ctx)
	if err := pause(ctx, set.seconds); err != nil {
		return e2ePace{}, err
	}
	begun()
	took := time.Since(start)
	own, redis = p.cpu()-own, set.server.cpu(ctx)-redis
	if err := errors.Join(failed, p.died()); err != nil {
		return e2ePace{}, err
	}
	if info.Pending == 0 {
		return e2ePace{}, fmt.Errorf("the queue ran dry: more than %d tasks were completed in %s", info.Completed, took)
	}
	n := float64(info.Completed - done)
	return e2ePace{perS: n / took.Seconds(), workerUS: float64(own.Microseconds()) / n, redisUS: float64(redis.Microseconds()) / n}, nil
}
