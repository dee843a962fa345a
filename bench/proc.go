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

	"golang.org/x/sys/unix"

	"reprise/internal/child"
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

// buildWorker compiles cmd/worker into dir and returns the path of the binary.
func buildWorker(ctx context.Context, dir string) (string, error) {
	return filepath.Join(dir, "worker"), build(ctx, dir, "cmd/worker")
}

// proc is a child process of a case and the file it logs to. It does not
// outlive this process.
type proc struct {
	*child.Process
	log *os.File
}

// startProc runs a command with its output in a new file logPath. A nil env is
// the environment of this process.
func startProc(logPath string, env []string, binary string, args ...string) (*proc, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("create the log of %s: %w", filepath.Base(binary), err)
	}
	cmd := exec.Command(binary, args...) // kill or a signal ends it
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		_ = log.Close() // the error of the start counts
		return nil, err
	}
	return &proc{Process: p, log: log}, nil
}

// kill ends the process at once.
func (p *proc) kill() {
	p.Kill()
	_ = p.log.Close()
}

// died is an error once the process has ended.
func (p *proc) died() error {
	select {
	case <-p.Done():
		return fmt.Errorf("%s ended by itself: %w; its log ends: %s", p.name(), p.Cause(), p.tail())
	default:
		return nil
	}
}

// logs waits until the log of the process contains text.
func (p *proc) logs(ctx context.Context, text string) error {
	var failed error
	err := until(ctx, processStart, func() bool {
		log, err := os.ReadFile(p.log.Name())
		if failed = err; err == nil {
			failed = p.died()
		}
		return failed != nil || strings.Contains(string(log), text)
	})
	if err != nil {
		return fmt.Errorf("wait until %s logs %s: %w; its log ends: %s", p.name(), text, err, p.tail())
	}
	return failed
}

// name is the file name of the log without its extension.
func (p *proc) name() string {
	base := filepath.Base(p.log.Name())
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// tail is the end of the process's log on one line.
func (p *proc) tail() string {
	raw, _ := os.ReadFile(p.log.Name()) // without a log the tail is empty
	raw = raw[max(len(raw)-800, 0):]
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(raw), "")), " ")
}

// memory reads a size in KiB, such as VmRSS, from /proc (Linux only).
func (p *proc) memory(field string) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("read the memory of %s: %w", p.name(), err)
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the memory of %s: %w", p.name(), err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("/proc has no %s (it exists on Linux only)", field)
}

// cpu is the CPU time the process has used; 0 where there is no /proc.
func (p *proc) cpu() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		return 0
	}
	// The second field is the command in parentheses; utime and stime are fields
	// 14 and 15, in hundredths of a second.
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// ownCPU is the CPU time this process has used.
func ownCPU() time.Duration {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
