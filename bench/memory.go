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

	"github.com/spf13/pflag"

	"reprise/internal/auddsim"
	"reprise/internal/queue"
	"reprise/tasks"
	"reprise/worker"
)

const mib = 1 << 20

// newMemory compares a worker's peak memory (VmHWM) while it sends one large enterprise file with its memory
// before the task (VmRSS). The file is pseudo-random, so that it cannot be compressed.
func newMemory(flags *pflag.FlagSet) measurement {
	size := flags.Int64("mib", 1024, "size of the file in MiB; --dir needs that much space")
	return func(ctx context.Context, dir string) (report, error) {
		before, peak, err := measureMemory(ctx, dir, *size)
		if err != nil {
			return report{}, err
		}
		row := []string{fmt.Sprint(*size), fmt.Sprintf("%.1f", before), fmt.Sprintf("%.1f", peak), fmt.Sprintf("%.1f", peak-before)}
		return report{
			header:  []string{"file MiB", "before MiB", "peak MiB", "growth MiB"},
			rows:    [][]string{row},
			figures: map[string]float64{"file_mib": float64(*size), "growth_mib": peak - before},
		}, nil
	}
}

// measureMemory returns the memory of a worker in MiB before and while it sends a file of size MiB.
func measureMemory(ctx context.Context, dir string, size int64) (before, peak float64, err error) {
	binary, err := buildWorker(ctx, dir)
	if err != nil {
		return 0, 0, err
	}
	r, err := startRig(ctx, dir, auddsim.Config{MatchShare: 1})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	payload, err := largeFile(filepath.Join(dir, "large.bin"), size)
	if err != nil {
		return 0, 0, err
	}
	slots := worker.DefaultOptions().Slots
	f := r.fleet(binary, recognizeSlots(slots.Recognize), fmt.Sprintf("REPRISE_SLOTS_ENTERPRISE=%d", slots.Enterprise), fmt.Sprintf("REPRISE_SLOTS_UPLOAD=%d", slots.Upload))
	if err := f.start(1); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	w := f.workers[0]
	if err := w.logs(ctx, `"msg":"ready"`); err != nil {
		return 0, 0, err
	}
	if before, err = w.memory("VmRSS"); err != nil {
		return 0, 0, err
	}
	if err := r.redis.fill(ctx, "", []tasks.Payload{payload}); err != nil {
		return 0, 0, err
	}
	stats, err := r.redis.waitQueue(ctx, 15*time.Minute, tasks.Enterprise, w, func(s queue.Stats) bool {
		return s.Completed+s.Archived > 0
	})
	if err != nil {
		return 0, 0, err
	}
	if stats.Completed == 0 {
		return 0, 0, fmt.Errorf("the large file's task was archived; the worker's log ends: %s", w.Tail())
	}
	peak, err = w.memory("VmHWM")
	return before, peak, err
}

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
