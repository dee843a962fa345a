package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hibiken/asynq"
	"github.com/spf13/pflag"

	"reprise/internal/devredis/redisproc"
	"reprise/internal/queue"
	"reprise/internal/timer"
	"reprise/tasks"
)

type e2eSettings struct {
	rounds, slots int
	seconds       time.Duration
	latencies     []time.Duration
	worker        string // path of the worker binary

	dir     string
	server  *benchRedis
	clips   []tasks.Payload
	started int // sides so far, for the names of their folders
}

// e2eMaxRate is the highest rate, in tasks a second, at which the queue lasts for the whole measurement of a
// side.
const e2eMaxRate = 6000

// newE2E compares whole processes: files in, HTTP calls to a simulator process, results in SQLite. The bare
// side is a process with an asynq server whose handler makes the same call and stores nothing.
func newE2E(flags *pflag.FlagSet) measurement {
	var set e2eSettings
	flags.IntVar(&set.rounds, "rounds", 5, "rounds per latency; the figures are medians")
	flags.DurationVar(&set.seconds, "seconds", 10*time.Second, "how long each side of a round is measured, from its first task on")
	flags.IntVar(&set.slots, "slots", 64, "tasks each side works on at once")
	flags.DurationSliceVar(&set.latencies, "latencies", []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond}, "latencies of the simulated API")
	flags.StringVar(&set.worker, "worker", "", "worker binary to measure, for comparing versions; empty = the one of this checkout")
	return func(ctx context.Context, dir string) (report, error) {
		if slices.Min(set.latencies) < 0 {
			return report{}, errors.New("--latencies must not be negative")
		}
		set.dir = dir
		return set.compare(ctx)
	}
}

// tasks returns how many tasks are enqueued for one side: more than its slots can complete.
func (set *e2eSettings) tasks(latency time.Duration) int {
	rate := float64(e2eMaxRate)
	if latency > 0 {
		rate = min(rate, float64(set.slots)/latency.Seconds())
	}
	return int(rate*set.seconds.Seconds()) + 2*set.slots
}

// compare measures the latencies in turn in each round, so that other load on the machine affects all of them
// alike.
func (set *e2eSettings) compare(ctx context.Context) (_ report, err error) {
	commands, need := []string{"cmd/auddsim", "bench"}, 0
	if set.worker == "" {
		set.worker, commands = filepath.Join(set.dir, "worker"), append(commands, "cmd/worker")
	}
	if err := build(ctx, set.dir, commands...); err != nil {
		return report{}, err
	}
	if set.server, err = startRedis(ctx, set.dir); err != nil {
		return report{}, err
	}
	defer func() { err = errors.Join(err, set.server.close()) }()
	for _, latency := range set.latencies {
		need = max(need, set.tasks(latency))
	}
	if set.clips, err = clipPayloads(set.dir, need); err != nil {
		return report{}, err
	}
	results := make([]comparison, len(set.latencies))
	for range set.rounds {
		for i, latency := range set.latencies {
			ours := func() (pace, error) { return set.measure(ctx, latency, set.startReprise) }
			bare := func() (pace, error) { return set.measure(ctx, latency, set.startBare) }
			if err := results[i].round(ours, bare); err != nil {
				return report{}, err
			}
		}
	}
	return e2eReport(set.latencies, results), nil
}

func e2eReport(latencies []time.Duration, results []comparison) report {
	r := report{
		header:  append([]string{"latency", "round", "reprise/s", "bare asynq/s", "ratio"}, costColumns...),
		figures: map[string]float64{},
	}
	for i, latency := range latencies {
		for _, row := range results[i].table() {
			r.rows = append(r.rows, append([]string{latency.String()}, row...))
		}
		ours, bare, ratio := results[i].medians()
		name := fmt.Sprintf("%dms", latency.Milliseconds())
		r.figures["ratio_"+name] = ratio
		if name += "_"; latency == 0 {
			name = ""
		}
		r.figures["reprise_"+name+"per_s"], r.figures["bare_"+name+"per_s"] = ours, bare
	}
	return r
}

func (set *e2eSettings) startReprise(dir, simURL string) (*proc, error) {
	f := newFleet(set.worker, dir, set.server.url, simURL, recognizeSlots(set.slots))
	if err := f.start(1); err != nil {
		return nil, err
	}
	return f.workers[0], nil
}

func (set *e2eSettings) startBare(dir, simURL string) (*proc, error) {
	return startProc(filepath.Join(dir, "bare.log"), nil, filepath.Join(set.dir, "bench"),
		"e2e-bare", "--redis="+set.server.rdb.Options().Addr, "--url="+simURL+"/", fmt.Sprintf("--slots=%d", set.slots))
}

// measure runs one side with an empty Redis, a new simulator process and a new SQLite file. It counts
// completed tasks from the moment the first task is active.
func (set *e2eSettings) measure(ctx context.Context, latency time.Duration, start func(dir, simURL string) (*proc, error)) (pace, error) {
	set.started++
	dir := filepath.Join(set.dir, fmt.Sprint("side-", set.started))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return pace{}, fmt.Errorf("make folder of a side: %w", err)
	}
	port, err := redisproc.FreePort()
	if err != nil {
		return pace{}, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	sim, err := startProc(filepath.Join(dir, "auddsim.log"), nil, filepath.Join(set.dir, "auddsim"), "--addr="+addr, "--log-size=1000", "--latency="+latency.String())
	if err != nil {
		return pace{}, err
	}
	defer sim.Kill()
	if err := sim.logs(ctx, addr); err != nil {
		return pace{}, err
	}
	if err := set.server.fill(ctx, "", set.clips[:set.tasks(latency)]); err != nil {
		return pace{}, err
	}
	p, err := start(dir, "http://"+addr)
	if err != nil {
		return pace{}, err
	}
	defer p.Kill()
	return set.count(ctx, p)
}

func (set *e2eSettings) count(ctx context.Context, p *proc) (pace, error) {
	first, err := set.server.waitQueue(ctx, processStart, tasks.Recognize, p, func(s queue.Stats) bool { return s.Active+s.Completed > 0 })
	if err != nil {
		return pace{}, err
	}
	start, own, redis := time.Now(), p.cpu(), set.server.cpu(ctx)
	if err := timer.Wait(ctx, set.seconds); err != nil {
		return pace{}, err
	}
	last, err := set.server.waitQueue(ctx, processStart, tasks.Recognize, p, func(queue.Stats) bool { return true })
	if err != nil {
		return pace{}, err
	}
	took, n := time.Since(start).Seconds(), float64(last.Completed-first.Completed)
	own, redis = p.cpu()-own, set.server.cpu(ctx)-redis
	if last.Pending == 0 {
		return pace{}, fmt.Errorf("the queue was empty before the end of the measurement: %d tasks were completed in %.1f s", last.Completed, took)
	}
	return pace{perS: n / took, ownUS: float64(own.Microseconds()) / n, redisUS: float64(redis.Microseconds()) / n}, nil
}

// newBareProcess runs the bare side of e2e until ctx ends: an asynq server whose handler reads the file of a
// task, posts it and stores nothing.
func newBareProcess(flags *pflag.FlagSet) measurement {
	addr := flags.String("redis", "127.0.0.1:6379", "address of Redis")
	url := flags.String("url", "http://127.0.0.1:8700/", "address of the simulator")
	slots := flags.Int("slots", 64, "tasks worked on at once")
	return func(ctx context.Context, _ string) (report, error) {
		transport := &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 128}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: time.Minute}
		srv := asynq.NewServer(asynq.RedisClientOpt{Addr: *addr, PoolSize: *slots + 10}, asynq.Config{
			Concurrency: *slots, Queues: map[string]int{tasks.Recognize.Queue(""): 1}, LogLevel: asynq.WarnLevel,
			TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: time.Second,
		})
		stop, err := serveAsynq(srv, func(ctx context.Context, p tasks.Payload) error {
			return postClip(ctx, client, *url, p.Input.Path)
		})
		if err != nil {
			return report{}, err
		}
		<-ctx.Done()
		return report{}, stop()
	}
}

// serveAsynq starts a server that decodes and handles tasks until stop is called.
func serveAsynq(srv *asynq.Server, handle func(context.Context, tasks.Payload) error) (stop func() error, err error) {
	return startAsynq(srv, func(ctx context.Context, t *asynq.Task) error {
		p, err := tasks.Decode(t.Type(), t.Payload())
		if err != nil {
			return err
		}
		return handle(ctx, p)
	})
}

func startAsynq(srv *asynq.Server, handle asynq.HandlerFunc) (stop func() error, err error) {
	if err := srv.Start(handle); err != nil {
		return nil, fmt.Errorf("start asynq: %w", err)
	}
	return func() error { srv.Shutdown(); return nil }, nil
}

// postClip sends a file as AudD's recognize expects it and reads the response.
func postClip(ctx context.Context, client *http.Client, url, path string) error {
	audio, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read a clip: %w", err)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("api_token", "bench-token") // writes to a buffer do not fail
	part, _ := form.CreateFormFile("file", filepath.Base(path))
	_, _ = part.Write(audio)
	_ = form.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &body)
	if err != nil {
		return fmt.Errorf("build the request: %w", err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("post a clip: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the response has status %s", resp.Status)
	}
	return nil
}
