package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/store"
	"reprise/worker"
)

// workerEnv makes the test binary run as a worker; its value is settings as JSON.
const workerEnv = "REPRISE_FLEET_WORKER"

// settings are the settings of a worker process.
type settings struct {
	Redis, Store, BaseURL string
	Cooldown              time.Duration
}

// runWorker runs a worker until SIGTERM and returns the exit code.
func runWorker(raw string) int {
	if err := work(raw); err != nil {
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
	o.Admission.PermitTTL = permitLife
	o.Admission.Breaker.Cooldown, o.Admission.Breaker.CooldownMax = s.Cooldown, s.Cooldown
	w, err := worker.New(ctx, o, records)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Run(ctx)
}

// process starts a worker process and waits until it takes tasks.
func (f *fleet) process(cooldown time.Duration) *proctest.Process {
	t := f.T
	t.Helper()
	raw, err := json.Marshal(settings{Redis: f.RedisURL(), Store: f.StoreURL(), BaseURL: f.Sim.URL, Cooldown: cooldown})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"="+string(raw))
	cmd.Dir = t.TempDir()
	p := proctest.Launch(t, "worker process", cmd)
	p.Line("ready", proctest.Patience)
	return p
}
