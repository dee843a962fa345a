package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// fleetSettings are what the workers of a fleet are told, as environment.
type fleetSettings struct {
	dir, binary, redisURL, simURL string
	slots                         int
	more                          []string
}

// buildWorker compiles cmd/worker into dir.
func buildWorker(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "worker")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "reprise/cmd/worker").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build cmd/worker: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return binary, nil
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

// start runs n more workers. It does not wait until they take tasks.
func (f *fleet) start(n int) error {
	for range n {
		f.started++
		log, err := os.Create(filepath.Join(f.dir, fmt.Sprintf("worker-%d.log", f.started)))
		if err != nil {
			return fmt.Errorf("create a worker's log: %w", err)
		}
		cmd := exec.Command(f.binary, "run") // our own build; stop and kill end it
		cmd.Env = f.env
		p, err := startProc(cmd, log)
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
		_ = p.Signal(syscall.SIGKILL) // it fails only when there is nothing left to kill
	}
	for _, p := range f.workers[:n] {
		<-p.Done()
		_ = p.log.Close()
	}
	f.workers = f.workers[n:]
}

// stop ends all workers in order, as SIGTERM does, and says which ended badly.
func (f *fleet) stop(within time.Duration) error {
	for _, p := range f.workers {
		_ = p.Signal(syscall.SIGTERM) // it has ended by itself: seen below
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	var errs []error
	for _, p := range f.workers {
		select {
		case <-p.Done():
			if err := p.Wait(); err != nil {
				errs = append(errs, fmt.Errorf("a worker ended with %w; its log ends: %s", err, p.tail()))
			}
			_ = p.log.Close()
		case <-timer.C:
			f.kill(len(f.workers))
			return errors.Join(append(errs, fmt.Errorf("the workers did not stop within %s and were killed", within))...)
		}
	}
	f.workers = nil
	return errors.Join(errs...)
}

// died tells of a worker that ended without being asked to.
func (f *fleet) died() error {
	for _, p := range f.workers {
		select {
		case <-p.Done():
			return fmt.Errorf("a worker ended by itself: %w; its log ends: %s", p.Cause(), p.tail())
		default:
		}
	}
	return nil
}
