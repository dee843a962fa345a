package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"reprise/internal/auddsim"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
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
	binary, err := buildWorker(ctx, folder)
	if err != nil {
		return m, err
	}
	redis, err := startRedis(ctx, folder)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, redis.close()) }()
	sim, err := auddsim.Listen(ctx, "127.0.0.1:0", auddsim.Config{MatchShare: 1})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	payload, err := largeFile(filepath.Join(folder, "large.bin"), size)
	if err != nil {
		return m, err
	}
	slots := worker.DefaultOptions().Slots
	f := newFleet(fleetSettings{
		dir: folder, binary: binary, redisURL: redis.url, simURL: sim.URL, slots: slots.Recognize,
		more: []string{fmt.Sprintf("REPRISE_SLOTS_ENTERPRISE=%d", slots.Enterprise), fmt.Sprintf("REPRISE_SLOTS_UPLOAD=%d", slots.Upload)},
	})
	if err := f.start(1); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	w := f.workers[0]
	if err := w.logs(ctx, `"msg":"ready"`); err != nil {
		return m, err
	}
	if m.before, err = w.memory("VmRSS"); err != nil {
		return m, err
	}
	if err := redis.enqueue(ctx, "", []tasks.Payload{payload}); err != nil {
		return m, err
	}
	if err := matched(ctx, f, payload); err != nil {
		return m, err
	}
	m.most, err = w.memory("VmHWM")
	return m, err
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

// matched waits until a fleet of one has done the task.
func matched(ctx context.Context, f *fleet, p tasks.Payload) (err error) {
	cfg := store.DefaultConfig()
	cfg.URL = storeURL(f.dir)
	records, err := store.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := records.TaskStatus(ctx, p.Key)
		switch {
		case err != nil:
			return err
		case s.Finished && s.Outcome != tasks.Match:
			return fmt.Errorf("the large file ended as %s: %s", s.Outcome, s.Reason)
		case s.Finished:
			return nil
		}
		if err := f.died(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the large file: %w; the worker's log ends: %s", ctx.Err(), f.workers[0].tail())
		case <-tick.C:
		}
	}
}
