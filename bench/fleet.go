package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// fleet has worker processes as a user runs them: `worker run`, by default with slots for recognition only,
// all on one Redis and one SQLite file.
type fleet struct {
	binary, dir string
	env         []string // settings all share
	workers     []*proc
	started     int
}

// newFleet returns a fleet without workers, with its data in dir. more are further settings as NAME=value.
func newFleet(binary, dir, redisURL, simURL string, more ...string) *fleet {
	return &fleet{binary: binary, dir: dir, env: append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(), "AUDD_API_TOKEN=bench-token",
		"REPRISE_REDIS_URL=" + redisURL, "REPRISE_STORE_URL=sqlite:" + filepath.Join(dir, "reprise.db"),
		"REPRISE_AUDD_BASE_URL=" + simURL + "/", "REPRISE_AUDD_ENTERPRISE_URL=" + simURL + "/enterprise/",
		"REPRISE_SLOTS_ENTERPRISE=0", "REPRISE_SLOTS_UPLOAD=0", "REPRISE_ADMIN_ADDR=127.0.0.1:0", "REPRISE_LOG_FORMAT=json",
	}, more...)}
}

func recognizeSlots(n int) string { return fmt.Sprintf("REPRISE_SLOTS_RECOGNIZE=%d", n) }

// start runs n more workers. It does not wait until they are ready.
func (f *fleet) start(n int) error {
	for range n {
		f.started++
		p, err := startProc(filepath.Join(f.dir, fmt.Sprintf("worker-%d.log", f.started)), f.env, f.binary, "run")
		if err != nil {
			return err
		}
		f.workers = append(f.workers, p)
	}
	return nil
}

func (f *fleet) kill(n int) {
	n = min(n, len(f.workers))
	for _, p := range f.workers[:n] {
		_ = p.Signal(syscall.SIGKILL) // before the first one is waited for; it fails only when the worker has ended
	}
	for _, p := range f.workers[:n] {
		p.Kill()
	}
	f.workers = f.workers[n:]
}

// stop ends all workers with SIGTERM, and after a minute with SIGKILL. It returns the errors of those that
// did not end cleanly.
func (f *fleet) stop() error {
	errs := make([]error, len(f.workers))
	var stopping sync.WaitGroup
	for i, p := range f.workers {
		stopping.Go(func() {
			_ = p.Stop(processStop) // a kill is reported by Wait
			if err := p.Wait(); err != nil {
				errs[i] = fmt.Errorf("%s ended with %w; its log ends: %s", p.name(), err, p.Tail())
			}
		})
	}
	stopping.Wait()
	f.workers = nil
	return errors.Join(errs...)
}

// died returns an error once a worker has ended without a signal from this process.
func (f *fleet) died() error {
	var errs []error
	for _, p := range f.workers {
		errs = append(errs, p.died())
	}
	return errors.Join(errs...)
}
