package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/worker"
)

// workerEnv makes this test binary a worker: it holds its settings as JSON.
const workerEnv = "REPRISE_FLEET_WORKER"

// settings is what a worker process is told.
type settings struct {
	Redis, Store, BaseURL string
	Cooldown              time.Duration
}

// beWorker works until SIGTERM; the result is the exit code.
func beWorker(raw string) int {
	err := work(raw)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet worker:", err)
		return 1
	}
	return 0
}

func work(raw string) (err error) {
	var s settings
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	sc := store.DefaultConfig()
	sc.URL = s.Store
	records, err := store.Open(ctx, sc)
	if err != nil {
		return err
	}
	defer records.Close()
	o := options(s.Redis, s.BaseURL)
	o.Log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	o.Admission.Breaker.Cooldown, o.Admission.Breaker.CooldownMax = s.Cooldown, s.Cooldown
	w, err := worker.New(ctx, o, records)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Run(ctx)
}

// process is a worker process.
type process struct {
	cmd   *exec.Cmd
	log   output
	ended chan struct{}
}

// launch is one process to start, on the one thread that starts them all.
type launch struct {
	cmd  *exec.Cmd
	done chan error
}

var (
	launches    = make(chan launch)
	spawnerOnce sync.Once
)

const spawnerFunction = "reprise/test/fleet.spawner"

// spawner starts every child from a thread that lives as long as this process:
// the kernel ends the children (Pdeathsig) with the thread that started them.
func spawner() {
	runtime.LockOSThread()
	for l := range launches {
		l.done <- l.cmd.Start()
	}
}

// process starts a worker process and waits until it takes tasks.
func (r *rig) process(cooldown time.Duration) *process {
	t := r.t
	t.Helper()
	raw, err := json.Marshal(settings{Redis: r.redisURL(), Store: r.storeURL(), BaseURL: r.sim.URL, Cooldown: cooldown})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{cmd: exec.Command(self), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(raw))
	p.cmd.Dir = t.TempDir()
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	spawnerOnce.Do(func() { go spawner() })
	l := launch{p.cmd, make(chan error, 1)}
	launches <- l
	require.NoError(t, <-l.done)
	go func() {
		_ = p.cmd.Wait() // killed, or its log says why
		close(p.ended)
	}()
	t.Cleanup(func() { p.end(t) })
	require.True(t, eventually(30*time.Second, func() bool { return len(p.log.lines("ready")) > 0 }), p.log.tail())
	return p
}

// kill ends the process with SIGKILL, if it has not ended, and waits.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func (p *process) end(t *testing.T) {
	p.kill()
	if t.Failed() {
		t.Logf("worker process:\n%s", p.log.tail())
	}
	if strings.Contains(p.log.String(), "DATA RACE") {
		t.Errorf("the worker process has a data race:\n%s", p.log.String())
	}
}
