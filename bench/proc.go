package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"reprise/internal/child"
	"reprise/internal/timer"
)

const (
	processStart = 30 * time.Second
	processStop  = time.Minute
)

// build compiles commands of this module, by their folders, into dir.
func build(ctx context.Context, dir string, commands ...string) error {
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	for _, command := range commands {
		args = append(args, "reprise/"+command)
	}
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w: %s", strings.Join(commands, ", "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func buildWorker(ctx context.Context, dir string) (string, error) {
	return filepath.Join(dir, "worker"), build(ctx, dir, "cmd/worker")
}

// proc is a child process of a case and the file it logs to.
type proc struct {
	*child.Process
	log string
}

// startProc runs a command with its output in the file log. A nil env is the environment of this process.
func startProc(log string, env []string, binary string, args ...string) (*proc, error) {
	cmd := exec.Command(binary, args...) // Kill or a signal ends it
	cmd.Env = env
	p, err := child.StartLogged(cmd, syscall.SIGKILL, log)
	if err != nil {
		return nil, err
	}
	return &proc{Process: p, log: log}, nil
}

func (p *proc) died() error {
	if p.Running() {
		return nil
	}
	return fmt.Errorf("%s ended by itself: %w; its log ends: %s", p.name(), p.Cause(), p.Tail())
}

func (p *proc) logs(ctx context.Context, text string) error {
	var failed error
	err := until(ctx, processStart, func() bool {
		log, err := os.ReadFile(p.log)
		if failed = err; err == nil {
			failed = p.died()
		}
		return failed != nil || strings.Contains(string(log), text)
	})
	if err != nil {
		return fmt.Errorf("wait until %s logs %s: %w; its log ends: %s", p.name(), text, err, p.Tail())
	}
	return failed
}

// name returns the file name of the log without its extension.
func (p *proc) name() string { return strings.TrimSuffix(filepath.Base(p.log), filepath.Ext(p.log)) }

// memory reads a size, such as VmRSS, from /proc (Linux only) and returns it in MiB.
func (p *proc) memory(field string) (float64, error) {
	var kib float64
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err == nil {
		_, value, _ := strings.Cut(string(status), field+":")
		_, err = fmt.Sscan(value, &kib)
	}
	if err != nil {
		return 0, fmt.Errorf("read %s of %s: %w", field, p.name(), err)
	}
	return kib / 1024, nil
}

// cpu returns the CPU time the process has used; 0 without /proc.
func (p *proc) cpu() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		return 0
	}
	// The second field is the command in parentheses; utime and stime are fields 14 and 15, in hundredths of
	// a second.
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func ownCPU() time.Duration {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// until checks every 5 ms whether a condition holds, for at most within.
func until(ctx context.Context, within time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !holds() {
		if err := timer.Wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
