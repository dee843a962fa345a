package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Wrap(m)) }

// rig is a worker with everything real around it: a redis-server, a SQLite
// file and the simulator over HTTP.
type rig struct {
	t       *testing.T
	sim     *auddsim.Server
	rdb     *redis.Client
	url     string // of Redis, as the worker sees it
	store   *store.Store
	records worker.Records // as the worker sees the store
	ledger  *idempotency.Ledger
	dir     string
	log     *proctest.Output
	options func(*worker.Options)
	inspect *asynq.Inspector
	worker  *worker.Worker // the one run last
}

const rigToken = "rig-token-5c1b"

func newRig(t *testing.T, cfg auddsim.Config, options func(*worker.Options)) *rig {
	t.Helper()
	server := redistest.NewServer(t)
	r := &rig{t: t, sim: auddsim.Start(t, cfg), rdb: server.Client(), url: server.URL(), dir: t.TempDir(), log: &proctest.Output{}, options: options}
	sc := store.DefaultConfig()
	sc.URL = "sqlite:" + filepath.Join(r.dir, "store.db")
	s, err := store.Open(t.Context(), sc)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r.store, r.records = s, s
	r.ledger, err = idempotency.New(t.Context(), s.DB(), idempotency.DefaultConfig())
	require.NoError(t, err)
	r.inspect = asynq.NewInspectorFromRedisClient(r.rdb)
	return r
}

// run starts a worker; the result stops it and waits.
func (r *rig) run() (stop func()) {
	r.t.Helper()
	o := worker.DefaultOptions()
	o.RedisURL = r.url
	o.Admin.Addr = ""
	o.Slots = worker.Slots{Recognize: 8, Enterprise: 2, Upload: 1}
	o.Sources = []worker.Source{{Name: "main", Token: func() string { return rigToken }, BaseURL: r.sim.URL, EnterpriseURL: r.sim.EnterpriseURL}}
	o.Ledger = r.ledger
	o.Log = slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if r.options != nil {
		r.options(&o)
	}
	w, err := worker.New(r.t.Context(), o, r.records)
	require.NoError(r.t, err)
	r.worker = w
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(r.t, <-ended)
			require.NoError(r.t, w.Close())
		})
	}
	r.t.Cleanup(stop)
	return stop
}

// clip writes a file of distinct content and returns its payload.
func (r *rig) clip(name string) tasks.Payload {
	r.t.Helper()
	content := append([]byte("RIFF....WAVE"), []byte(name+r.t.Name())...)
	return r.file(name, content)
}

func (r *rig) file(name string, content []byte) tasks.Payload {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	require.NoError(r.t, os.WriteFile(path, content, 0o600))
	sum := sha256.Sum256(content)
	p, err := tasks.New(tasks.Recognize, tasks.Input{
		Kind: tasks.FileInput, Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
	}, tasks.Params{}, 0)
	require.NoError(r.t, err)
	return p
}

func (r *rig) enqueue(p tasks.Payload, opts ...asynq.Option) {
	r.t.Helper()
	task, err := p.Task("")
	require.NoError(r.t, err)
	_, err = asynq.NewClientFromRedisClient(r.rdb).EnqueueContext(r.t.Context(), task, opts...)
	require.NoError(r.t, err)
}

// verdict waits until the task has its verdict.
func (r *rig) verdict(p tasks.Payload, within time.Duration) store.TaskStatus {
	r.t.Helper()
	var last store.TaskStatus
	ok := eventually(within, func() bool {
		s, err := r.store.TaskStatus(r.t.Context(), p.Key)
		last = s
		return err == nil && s.Finished
	})
	if !ok {
		r.t.Fatalf("no verdict within %s; store says %+v\nqueue: %s\nlog:\n%s", within, last, r.queueState(p), r.log.String())
	}
	return last
}

// state waits until asynq has the task in a state.
func (r *rig) state(p tasks.Payload, want asynq.TaskState, within time.Duration) *asynq.TaskInfo {
	r.t.Helper()
	var last *asynq.TaskInfo
	ok := eventually(within, func() bool {
		info, err := r.inspect.GetTaskInfo(p.Path.Queue(""), p.Key)
		last = info
		return err == nil && info.State == want
	})
	if !ok {
		r.t.Fatalf("not %s within %s: %s\nlog:\n%s", want, within, r.queueState(p), r.log.String())
	}
	return last
}

func (r *rig) queueState(p tasks.Payload) string {
	info, err := r.inspect.GetTaskInfo(p.Path.Queue(""), p.Key)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s retried %d/%d last error %q", info.State, info.Retried, info.MaxRetry, info.LastErr)
}

func (r *rig) calls(p tasks.Payload) []store.Call {
	r.t.Helper()
	calls, err := r.store.Calls(r.t.Context(), store.CallFilter{Key: p.Key})
	require.NoError(r.t, err)
	return calls
}

// requests is how often the content of p reached the simulator.
func (r *rig) requests(p tasks.Payload) int64 {
	return r.sim.Bill().Content(string(p.Path), p.Input.SHA256).Requests
}

// eventually waits for ok; the bound only ends a stuck test.
func eventually(within time.Duration, ok func() bool) bool {
	return proctest.Poll(4*within, ok)
}

// unlimitedBilling lets possibly billed calls be as many as counted attempts.
func unlimitedBilling(o *worker.Options) { o.Policy.MaxPossiblyBilled = o.Policy.MaxAttempts + 1 }
