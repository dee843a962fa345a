package blackbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/intake"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redisconn"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

// token is what the workers of these tests send.
const token = "blackbox-token-7d1f"

// rig is what a worker needs, one of each per test: a redis-server that keeps
// everything it acknowledges, a proxy before it, a SQLite file, a simulator.
type rig struct {
	t      *testing.T
	server *redistest.Server
	proxy  *redistest.Proxy // what workers connect to
	rdb    *redis.Client    // past the proxy
	sim    *auddsim.Server
	dir    string
	token  string
	store  *store.Store
}

// Every content matches unless cfg says otherwise.
func newRig(t *testing.T, cfg auddsim.Config, opts ...redistest.Option) *rig {
	t.Helper()
	if cfg.MatchShare == 0 {
		cfg.MatchShare = 1
	}
	server := redistest.NewServer(t, append(opts, redistest.AOF("always"))...)
	r := &rig{t: t, server: server, sim: auddsim.Start(t, cfg), dir: t.TempDir(), token: token}
	r.proxy = redistest.NewProxy(t, r.server.Addr())
	r.rdb = r.server.Client()
	r.store = r.openStore()
	return r
}

func (r *rig) openStore() *store.Store {
	r.t.Helper()
	c := store.DefaultConfig()
	c.URL = r.storeURL()
	s, err := store.Open(r.t.Context(), c)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, s.Close()) })
	return s
}

func (r *rig) storeFile() string { return filepath.Join(r.dir, "store", "reprise.db") }
func (r *rig) storeURL() string  { return "sqlite:" + r.storeFile() }

// env is the environment of the commands.
func (r *rig) env() []string {
	return []string{
		"REPRISE_REDIS_URL=" + r.redisURL(), "REPRISE_STORE_URL=" + r.storeURL(), "AUDD_API_TOKEN=" + r.token,
		"REPRISE_LOG_LEVEL=debug", "REPRISE_LOG_FORMAT=json",
	}
}

// redisURL is Redis behind the proxy.
func (r *rig) redisURL() string {
	return strings.Replace(r.server.URL(), r.server.Addr(), r.proxy.Addr(), 1)
}

// worker starts `worker run` against the simulator and waits until it is ready.
func (r *rig) worker(flags ...string) *proctest.Process {
	r.t.Helper()
	p := r.workerWith(r.env(), flags...)
	p.Line("ready", patience)
	return p
}

func (r *rig) workerWith(env []string, flags ...string) *proctest.Process {
	r.t.Helper()
	args := append([]string{"run", "--admin", "127.0.0.1:0", "--base-url", r.sim.URL, "--enterprise-url", r.sim.EnterpriseURL}, flags...)
	return proctest.Start(r.t, env, "worker", args...)
}

// clips writes n files of distinct content that look like audio.
func (r *rig) clips(n int) []string {
	r.t.Helper()
	dir := filepath.Join(r.dir, "clips")
	require.NoError(r.t, os.MkdirAll(dir, 0o700))
	files := make([]string, n)
	for i := range files {
		files[i] = filepath.Join(dir, fmt.Sprintf("clip-%03d.wav", i))
		require.NoError(r.t, os.WriteFile(files[i], wav(r.t.Name()+files[i]), 0o600))
	}
	return files
}

// named writes one clip under a name of its own.
func (r *rig) named(name string) string {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	require.NoError(r.t, os.WriteFile(file, wav(r.t.Name()+name), 0o600))
	return file
}

// enqueue queues inputs as `enqueue recognize` does and returns their payloads.
func (r *rig) enqueue(inputs ...string) []tasks.Payload {
	r.t.Helper()
	rdb, err := redisconn.Queue(r.server.URL(), 4)
	require.NoError(r.t, err)
	defer rdb.Close()
	in, err := intake.New(intake.Options{Redis: rdb, Store: r.store})
	require.NoError(r.t, err)
	plan, err := in.Plan(r.t.Context(), intake.Request{Path: tasks.Recognize}, inputs, nil)
	require.NoError(r.t, err)
	require.NoError(r.t, in.Enqueue(r.t.Context(), plan, nil))
	out := make([]tasks.Payload, len(plan.Items))
	for i, it := range plan.Items {
		require.Equal(r.t, intake.Queued, it.Status, "%s: %s", it.Name, it.Reason)
		out[i] = it.Payload
	}
	return out
}

// standing waits until a task has its verdict.
func (r *rig) standing(p tasks.Payload, within time.Duration) store.TaskStatus {
	r.t.Helper()
	var last store.TaskStatus
	ok := eventually(within, func() bool {
		s, err := r.store.TaskStatus(r.t.Context(), p.Key)
		last = s
		return err == nil && s.Finished
	})
	require.True(r.t, ok, "no verdict within %s; the store says %+v, the queue %s", within, last, r.queueState(p))
	return last
}

func (r *rig) queueState(p tasks.Payload) string {
	info, err := asynq.NewInspectorFromRedisClient(r.rdb).GetTaskInfo(p.Path.Queue(""), p.Key)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, retried %d, next %s, last error %q", info.State, info.Retried, time.Until(info.NextProcessAt).Round(time.Second), info.LastErr)
}

// acked waits until asynq has no clip on its way, and returns its counts.
func (r *rig) acked(within time.Duration) redistest.Counts {
	r.t.Helper()
	var last redistest.Counts
	ok := eventually(within, func() bool {
		n, err := redistest.CountTasks(r.t.Context(), r.rdb, tasks.Recognize.Queue(""))
		last = n
		return err == nil && n.Pending+n.Active+n.Scheduled+n.Retry == 0
	})
	require.True(r.t, ok, "tasks are still on their way after %s: %+v", within, last)
	return last
}

// held waits until so many requests are held at the simulator.
func (r *rig) held(n int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	_, err := r.sim.WaitHeld(ctx, n)
	require.NoError(r.t, err)
}

// age moves the leases of a path into the past, as if their worker had been
// dead for a minute; a worker that starts then takes the tasks over.
func (r *rig) age(path tasks.Path, want int) {
	r.t.Helper()
	n, err := redistest.AgeLeases(r.t.Context(), r.rdb, path.Queue(""), redistest.LeaseOver)
	require.NoError(r.t, err)
	require.Equal(r.t, want, n, "tasks with a lease")
}

func (r *rig) calls(p tasks.Payload) []store.Call {
	r.t.Helper()
	calls, err := r.store.Calls(r.t.Context(), store.CallFilter{Key: p.Key})
	require.NoError(r.t, err)
	return calls
}

// requests are the requests made with the content of a task, running ones too.
func (r *rig) requests(p tasks.Payload) []auddsim.Request {
	return r.sim.Requests(auddsim.Filter{Path: string(p.Path), Name: filepath.Base(p.Input.Path)})
}

// once makes sure that every task is done, with one request, one call row and
// one result.
func (r *rig) once(payloads []tasks.Payload) {
	r.t.Helper()
	for _, p := range payloads {
		s := r.standing(p, patience)
		require.Equal(r.t, tasks.Done, s.Verdict, s.Reason)
		require.NotEmpty(r.t, s.Result)
		require.Len(r.t, r.requests(p), 1, "requests of %s", p.Input.Path)
		require.Len(r.t, r.calls(p), 1, "call rows of %s", p.Input.Path)
		history, err := r.store.History(r.t.Context(), p.Key)
		require.NoError(r.t, err)
		require.Len(r.t, history, 1, "results of %s", p.Input.Path)
	}
	require.EqualValues(r.t, len(payloads), r.sim.Bill().Units, "units billed")
}

// deliveredOnce makes sure that a worker acknowledged every task itself: none came a
// second time, because its lease had ended, to be answered from the store.
func deliveredOnce(t *testing.T, w *proctest.Process) {
	t.Helper()
	require.Empty(t, w.Log.Lines("answered from the store: no call"))
}

// wav is a second of noise as PCM, 8 kHz, 8 bit, mono; the seed makes it unlike any other.
func wav(seed string) []byte {
	const length = 8000
	sum := sha256.Sum256([]byte(seed))
	noise := make([]byte, length)
	_, _ = rand.NewChaCha8(sum).Read(noise) // never fails
	var b bytes.Buffer
	b.WriteString("RIFF")
	little(&b, uint32(36+length))
	b.WriteString("WAVEfmt ")
	little(&b, uint32(16), uint16(1), uint16(1), uint32(8000), uint32(8000), uint16(1), uint16(8))
	b.WriteString("data")
	little(&b, uint32(length))
	b.Write(noise)
	return b.Bytes()
}

func little(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, v) // a Buffer takes everything
	}
}
