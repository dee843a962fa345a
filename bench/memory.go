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

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/queue"
	"reprise/tasks"
	"reprise/worker"
)

const mib = 1 << 20

// benchMemory lets a separate worker process send one large enterprise file and
// compares its peak memory (VmHWM) with its memory before the task (VmRSS). The
// file is pseudo-random, so that it cannot be compressed.
func benchMemory(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags("memory", out)
	size := flags.Int64("mib", 1024, "size of the file in MiB")
	dir := flags.String("dir", os.TempDir(), "folder for the file; it needs that much space")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *size < 1 {
		return errors.New("mib must be positive")
	}
	return inFolder(*dir, func(dir string) error {
		m, err := measureMemory(ctx, dir, *size)
		if err != nil {
			return err
		}
		const kib = 1024
		before, peak := float64(m.before)/kib, float64(m.peak)/kib
		row := []string{fmt.Sprint(*size), fmt.Sprintf("%.1f", before), fmt.Sprintf("%.1f", peak), fmt.Sprintf("%.1f", peak-before)}
		if err := printTable(out, []string{"file MiB", "before MiB", "peak MiB", "growth MiB"}, [][]string{row}); err != nil {
			return err
		}
		return printFigures(out, struct {
			FileMiB   float64 `json:"file_mib"`
			GrowthMiB float64 `json:"growth_mib"`
		}{float64(*size), peak - before})
	})
}

// memory of a process in KiB.
type memory struct{ before, peak int64 }

func measureMemory(ctx context.Context, dir string, size int64) (m memory, err error) {
	binary, err := buildWorker(ctx, dir)
	if err != nil {
		return m, err
	}
	r, err := startRig(ctx, dir, auddsim.Config{MatchShare: 1})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	payload, err := largeFile(filepath.Join(dir, "large.bin"), size)
	if err != nil {
		return m, err
	}
	slots := worker.DefaultOptions().Slots
	f := r.fleet(binary, recognizeSlots(slots.Recognize), fmt.Sprintf("REPRISE_SLOTS_ENTERPRISE=%d", slots.Enterprise), fmt.Sprintf("REPRISE_SLOTS_UPLOAD=%d", slots.Upload))
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
	if err := r.redis.fill(ctx, "", []tasks.Payload{payload}); err != nil {
		return m, err
	}
	var stats queue.Stats
	var failed error
	queues := queue.New(r.redis.rdb, admission.DefaultPrefix)
	err = until(ctx, 15*time.Minute, func() bool {
		stats, failed = queues.Stats(ctx, tasks.Enterprise.Queue(""))
		failed = errors.Join(failed, w.died())
		return failed != nil || stats.Completed+stats.Archived > 0
	})
	if err = errors.Join(err, failed); err == nil && stats.Completed == 0 {
		err = errors.New("its task was archived")
	}
	if err != nil {
		return m, fmt.Errorf("wait for the large file: %w; the worker's log ends: %s", err, w.tail())
	}
	m.peak, err = w.memory("VmHWM")
	return m, err
}

// largeFile writes pseudo-random bytes and returns their task.
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
