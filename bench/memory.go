package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"reprise/internal/auddsim"
	"reprise/internal/devredis"
	"reprise/internal/redisconn"
	"reprise/store"
	"reprise/tasks"
)

const mib = 1 << 20

// benchMemory lets a separate worker process send one large enterprise file
// and compares the most memory it ever had (VmHWM) with what it had before the
// task (VmRSS). The file is pseudo-random, so that nothing can shrink it.
func benchMemory(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := newFlags("memory", out)
	size := flags.Int64("mib", 1024, "size of the file, MiB")
	within := flags.Duration("within", 15*time.Minute, "time limit of the whole case")
	dir := flags.String("dir", os.TempDir(), "where the file is made: it needs that much space")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *size < 1 || *within <= 0 {
		return errors.New("mib and within must be positive")
	}
	ctx, cancel := context.WithTimeout(ctx, *within)
	defer cancel()
	folder, err := os.MkdirTemp(*dir, "reprise-bench-")
	if err != nil {
		return fmt.Errorf("make folder for the file: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	grown, err := memoryOf(ctx, folder, *size)
	if err != nil {
		return err
	}
	const kib = 1024
	before, most := float64(grown.before)/kib, float64(grown.most)/kib
	row := []string{fmt.Sprint(*size), fmt.Sprintf("%.1f", before), fmt.Sprintf("%.1f", most), fmt.Sprintf("%.1f", most-before)}
	if err := printTable(out, []string{"file MiB", "before MiB", "most MiB", "growth MiB"}, [][]string{row}); err != nil {
		return err
	}
	return printFigures(out, struct {
		FileMiB   float64 `json:"file_mib"`
		GrowthMiB float64 `json:"growth_mib"`
	}{float64(*size), most - before})
}

// memory of a process in KiB.
type memory struct{ before, most int64 }

// memoryOf runs the whole of it: Redis, simulator, store, a built worker, a task.
func memoryOf(ctx context.Context, folder string, size int64) (m memory, err error) {
	exe := filepath.Join(folder, "worker")
	build := exec.CommandContext(ctx, "go", "build", "-o", exe, "reprise/cmd/worker")
	if said, err := build.CombinedOutput(); err != nil {
		return m, fmt.Errorf("build the worker: %w\n%s", err, said)
	}
	conf := devredis.DefaultConfig()
	conf.Dir = filepath.Join(folder, "redis")
	redis, err := devredis.Start(ctx, conf)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	if redis.Kind != devredis.KindServer {
		return m, errors.New("this case needs a redis-server on PATH: the worker is a process of its own")
	}
	sim, err := auddsim.Listen(ctx, "127.0.0.1:0", auddsim.Config{MatchShare: 1})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	payload, err := largeFile(filepath.Join(folder, "large.bin"), size)
	if err != nil {
		return m, err
	}
	w := &measured{exe: exe, env: []string{
		"REPRISE_REDIS_URL=" + redis.URL, "REPRISE_STORE_URL=sqlite:" + filepath.Join(folder, "store.db"), "AUDD_API_TOKEN=bench-token",
		"REPRISE_LOG_FORMAT=json",
	}, args: []string{"run", "--admin", "127.0.0.1:0", "--base-url", sim.URL, "--enterprise-url", sim.EnterpriseURL}}
	if err := w.start(ctx); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	return w.through(ctx, redis.URL, filepath.Join(folder, "store.db"), payload)
}

// largeFile writes pseudo-random bytes and describes them as a task.
func largeFile(file string, size int64) (p tasks.Payload, err error) {
	f, err := os.Create(file)
	if err != nil {
		return p, fmt.Errorf("make the large file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := sha256.New()
	noise := rand.NewChaCha8([32]byte{1})
	if _, err := io.CopyN(io.MultiWriter(f, hash), noise, size*mib); err != nil {
		return p, fmt.Errorf("write the large file: %w", err)
	}
	const bytesPerSecond = 16_000 // as the simulator estimates it
	return tasks.New(tasks.Enterprise, tasks.Input{
		Kind: tasks.FileInput, Path: file, Size: size * mib, SHA256: hex.EncodeToString(hash.Sum(nil)),
		Seconds: float64(size * mib / bytesPerSecond),
	}, tasks.Params{}, 0)
}

// measured is a worker process that is watched.
type measured struct {
	exe  string
	env  []string
	args []string
	cmd  *exec.Cmd
	last atomic.Value // string: the last line of its log
}

const workerStart = 30 * time.Second

// start returns when the worker takes tasks.
func (w *measured) start(ctx context.Context) error {
	w.cmd = exec.CommandContext(ctx, w.exe, w.args...)
	w.cmd.Env = append(os.Environ(), w.env...)
	log, err := w.cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("read the worker's log: %w", err)
	}
	if err := w.cmd.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	w.last.Store("")
	ready := make(chan bool, 1)
	go func() { // ends with the process; nobody else reads its log
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			w.last.Store(lines.Text())
			if strings.Contains(lines.Text(), `"msg":"ready"`) {
				ready <- true
			}
		}
		close(ready)
	}()
	timer := time.NewTimer(workerStart)
	defer timer.Stop()
	select {
	case ok := <-ready:
		if ok {
			return nil
		}
	case <-timer.C:
	}
	return errors.Join(fmt.Errorf("the worker is not ready: %s", w.last.Load()), w.stop())
}

// stop ends the worker and waits.
func (w *measured) stop() error {
	_ = w.cmd.Process.Signal(os.Interrupt) // it may have ended
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("stop the worker: %w", err)
	}
	return nil
}

// through enqueues the task and waits until it is done.
func (w *measured) through(ctx context.Context, redisURL, db string, p tasks.Payload) (m memory, err error) {
	rdb, err := redisconn.Queue(redisURL, 1)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, rdb.Close()) }()
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + db
	records, err := store.Open(ctx, cfg)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	task, err := p.Task("")
	if err != nil {
		return m, err
	}
	if m.before, err = w.status("VmRSS"); err != nil {
		return m, err
	}
	if _, err := asynq.NewClientFromRedisClient(rdb).EnqueueContext(ctx, task); err != nil {
		return m, fmt.Errorf("enqueue the large file: %w", err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := records.Standing(ctx, p.Key)
		switch {
		case err != nil:
			return m, err
		case s.Finished && s.Outcome != tasks.Match:
			return m, fmt.Errorf("the large file ended as %s: %s", s.Outcome, s.Reason)
		case s.Finished:
			m.most, err = w.status("VmHWM")
			return m, err
		}
		select {
		case <-ctx.Done():
			return m, fmt.Errorf("wait for the large file: %w; the worker's last word: %s", ctx.Err(), w.last.Load())
		case <-tick.C:
		}
	}
}

// status reads a size in KiB from the kernel's account of the process.
func (w *measured) status(name string) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read the worker's memory: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the worker's memory: %w", err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("the kernel does not tell %s (Linux only)", name)
}
