package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// fleet is worker processes as a user runs them: `worker run`, each with slots
// for recognition only, all on one Redis and one SQLite file.
type fleet struct {
	binary, dir string
	env         []string // settings all share
	workers     []*proc
	started     int
}

// fleetSettings are the settings that the workers of a fleet share.
type fleetSettings struct {
	dir, binary, redisURL, simURL string
	slots                         int
	more                          []string // further settings as NAME=value
}

// buildWorker compiles cmd/worker into dir and returns its path.
func buildWorker(ctx context.Context, dir string) (string, error) {
	return filepath.Join(dir, "worker"), build(ctx, dir, "cmd/worker")
}

// storeURL is the SQLite file of a fleet in dir.
func storeURL(dir string) string { return "sqlite:" + filepath.Join(dir, "reprise.db") }

func newFleet(set fleetSettings) *fleet {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + set.dir, "TMPDIR=" + os.TempDir(), "AUDD_API_TOKEN=bench-token",
		"REPRISE_REDIS_URL=" + set.redisURL, "REPRISE_STORE_URL=" + storeURL(set.dir),
		"REPRISE_AUDD_BASE_URL=" + set.simURL + "/", "REPRISE_AUDD_ENTERPRISE_URL=" + set.simURL + "/enterprise/",
		fmt.Sprintf("REPRISE_SLOTS_RECOGNIZE=%d", set.slots), "REPRISE_SLOTS_ENTERPRISE=0", "REPRISE_SLOTS_UPLOAD=0",
		"REPRISE_ADMIN_ADDR=127.0.0.1:0", "REPRISE_LOG_FORMAT=json",
	}
	return &fleet{binary: set.binary, dir: set.dir, env: append(env, set.more...)}
}

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

// kill ends the first n workers with SIGKILL.
func (f *fleet) kill(n int) {
	n = min(n, len(f.workers))
	for _, p := range f.workers[:n] {
		_ = p.Signal(syscall.SIGKILL) // all of them before one is waited for; it fails when the worker has ended
	}
	for _, p := range f.workers[:n] {
		p.kill()
	}
	f.workers = f.workers[n:]
}

// stop ends all workers with SIGTERM and returns the errors of those that did
// not end cleanly. It kills what still runs after a minute.
func (f *fleet) stop() error {
	for _, p := range f.workers {
		_ = p.Signal(syscall.SIGTERM) // it fails when the worker has ended, which is reported below
	}
	timer := time.NewTimer(processStop)
	defer timer.Stop()
	var errs []error
	for _, p := range f.workers {
		select {
		case <-p.Done():
			if err := p.Wait(); err != nil {
				errs = append(errs, fmt.Errorf("%s ended with %w; its log ends: %s", p.name(), err, p.tail()))
			}
			_ = p.log.Close()
		case <-timer.C:
			f.kill(len(f.workers))
			return errors.Join(append(errs, fmt.Errorf("the workers did not stop within %s and were killed", processStop))...)
		}
	}
	f.workers = nil
	return errors.Join(errs...)
}

// died is an error once a worker has ended without a signal from this process.
func (f *fleet) died() error {
	var errs []error
	for _, p := range f.workers {
		errs = append(errs, p.died())
	}
	return errors.Join(errs...)
}
