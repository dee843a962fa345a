package uploadcrash

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

const (
	token   = "uploadcrash-token-41c7"
	audioID = int64(4711)
	queue   = "upload"
	permits = "reprise:{adm}:permits" // members are task keys, scores when permits end (ms)
)

// rig is one upload and all it needs: a redis-server, a SQLite file, the
// simulator, and gates in front of Redis and AudD for the worker that will be
// stopped. Other workers pass by the gates.
type rig struct {
	t        *testing.T
	server   *redistest.Server
	rdb      *redis.Client
	redis    *gate
	upstream *gate
	sim      *auddsim.Server
	dir      string
	store    *store.Store
	ledger   *idempotency.Ledger
	task     tasks.Payload
	sha      string
	env      []string // of all workers, beside the usual
	first    *proctest.Process
	second   *proctest.Process
}

// plan changes how newRig builds a rig.
type plan struct {
	sim  auddsim.Config
	late bool // AudD accepts no connection at first
	size int  // of the audio
	raw  bool // enqueued without a claim in the ledger
}

func newRig(t *testing.T, p plan) *rig {
	t.Helper()
	r := &rig{t: t, server: redistest.NewServer(t), sim: auddsim.Start(t, p.sim), dir: t.TempDir()}
	r.rdb = r.server.Client()
	r.redis = newGate(t, r.server.Addr())
	target := strings.TrimPrefix(r.sim.URL, "http://")
	if p.late {
		r.upstream = newLateGate(t, target)
	} else {
		r.upstream = newGate(t, target)
	}
	c := store.DefaultConfig()
	c.URL = r.storeURL()
	c.BusyTimeout = patience
	s, err := store.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r.store = s
	r.ledger, err = idempotency.New(t.Context(), s.DB(), idempotency.DefaultConfig())
	require.NoError(t, err)
	r.record(max(p.size, 20_000))
	if !p.raw {
		got, err := r.ledger.Claim(t.Context(), idempotency.Claim{
			Source: "main", AudioID: audioID, Key: r.task.Key, SHA256: r.sha, By: "test", At: time.Now(),
		})
		require.NoError(t, err)
		require.NoError(t, got[0].Refused)
	}
	return r
}

// record writes audio unlike any other and makes the task of its upload.
func (r *rig) record(size int) {
	r.t.Helper()
	content := make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(r.t.Name()))).Read(content) // never fails
	sum := sha256.Sum256(content)
	r.sha = hex.EncodeToString(sum[:])
	file := filepath.Join(r.dir, "track.wav")
	require.NoError(r.t, os.WriteFile(file, content, 0o600))
	id := audioID
	var err error
	r.task, err = tasks.New(tasks.Upload, tasks.Input{Kind: tasks.FileInput, Path: file, Size: int64(size), SHA256: r.sha},
		tasks.Params{AudioID: &id, Source: "main"}, 0)
	require.NoError(r.t, err)
}

func (r *rig) storeFile() string { return filepath.Join(r.dir, "store", "reprise.db") }
func (r *rig) storeURL() string  { return "sqlite:" + r.storeFile() }

// enqueue queues the task; one that is queued already stays.
func (r *rig) enqueue() {
	r.t.Helper()
	task, err := r.task.Task("")
	require.NoError(r.t, err)
	_, err = asynq.NewClientFromRedisClient(r.rdb).EnqueueContext(r.t.Context(), task)
	if !errors.Is(err, asynq.ErrTaskIDConflict) {
		require.NoError(r.t, err)
	}
}

// startFirst starts the worker that will be stopped, behind the gates.
func (r *rig) startFirst(extra ...string) {
	r.t.Helper()
	r.first = r.worker("first", r.redis.addr, "http://"+r.upstream.addr, extra...)
}

// startSecond starts a worker that goes straight to everything.
func (r *rig) startSecond() {
	r.t.Helper()
	r.second = r.worker("second", r.server.Addr(), r.sim.URL)
}

func (r *rig) worker(name, redisAddr, url string, extra ...string) *proctest.Process {
	r.t.Helper()
	return r.up(r.launch(name, redisAddr, url, extra...))
}

// launch starts a worker, up waits until it works.
func (r *rig) launch(name, redisAddr, url string, extra ...string) *proctest.Process {
	r.t.Helper()
	env := slices.Concat([]string{
		"REPRISE_REDIS_URL=redis://" + redisAddr + "/0", "REPRISE_STORE_URL=" + r.storeURL(), "AUDD_API_TOKEN=" + token,
		"REPRISE_LOG_LEVEL=debug", "REPRISE_LOG_FORMAT=json",
	}, r.env, extra)
	cmd := proctest.Command(r.t, env, "worker", "run", "--admin", "127.0.0.1:0", "--base-url", url, "--skip-auth-check",
		"--recognize-slots", "0", "--enterprise-slots", "0", "--upload-slots", "1")
	return proctest.Launch(r.t, "the "+name+" worker", cmd)
}

func (r *rig) up(p *proctest.Process) *proctest.Process {
	r.t.Helper()
	p.Line("ready", patience)
	require.True(r.t, p.Running(), "%s does not start", p.Name)
	return p
}

// lock holds the database's write lock until the result is called.
func (r *rig) lock() (unlock func()) {
	r.t.Helper()
	db, err := sql.Open("sqlite", r.storeFile()+"?_pragma=busy_timeout(120000)")
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(r.t.Context())
	require.NoError(r.t, err)
	_, err = conn.ExecContext(r.t.Context(), "BEGIN IMMEDIATE")
	require.NoError(r.t, err)
	return func() {
		_, _ = conn.ExecContext(context.Background(), "ROLLBACK") // a connection that closes rolls back too
		_ = conn.Close()
	}
}

// exec changes the database from outside.
func (r *rig) exec(statement string) {
	r.t.Helper()
	_, err := r.store.DB().ExecContext(context.WithoutCancel(r.t.Context()), statement)
	require.NoError(r.t, err)
}

// died makes what a dead or frozen worker holds in Redis as old as if it had
// been silent for a minute.
func (r *rig) died() {
	r.t.Helper()
	_, err := redistest.AgeLeases(r.t.Context(), r.rdb, queue, redistest.LeaseOver)
	require.NoError(r.t, err)
	require.NoError(r.t, r.rdb.Eval(r.t.Context(), `
		for _, m in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZINCRBY', KEYS[1], -60000, m) end return 1`,
		[]string{permits}).Err())
}

// ageSends makes sends without a conclusion as old as the longest call and
// the margin after it, if they are not.
func (r *rig) ageSends() {
	old := time.Now().Add(-31 * time.Second).UnixMilli()
	r.exec(fmt.Sprintf(`UPDATE upload SET sent_at = %[1]d - timeout_ms WHERE state = 'sent' AND sent_at > %[1]d - timeout_ms`, old))
}

// hurry makes retries due until ok.
func (r *rig) hurry(within time.Duration, ok func() bool) bool {
	next := time.Now()
	return eventually(within, func() bool {
		if now := time.Now(); now.After(next) {
			next = now.Add(500 * time.Millisecond)
			_, err := redistest.AgeRetries(r.t.Context(), r.rdb, queue, time.Hour)
			if err != nil && r.t.Context().Err() == nil {
				return false
			}
		}
		return ok()
	})
}

// seen reports whether a worker has come to an answer about the task.
func (r *rig) seen(p *proctest.Process) bool {
	return said(p, r.task.Key, "answer", "attempt", "answered from the store: no call")
}

func (r *rig) look() idempotency.UploadStatus {
	r.t.Helper()
	st, err := r.ledger.Status(r.t.Context(), r.task.Key)
	require.NoError(r.t, err)
	return st
}

func (r *rig) standing() store.TaskStatus {
	r.t.Helper()
	s, err := r.store.TaskStatus(r.t.Context(), r.task.Key)
	require.NoError(r.t, err)
	return s
}

// permitted reports whether Redis granted the task's call.
func (r *rig) permitted() bool {
	return r.rdb.ZScore(r.t.Context(), permits, r.task.Key).Err() == nil
}

// over reports whether the task has its verdict, and asynq has heard of it.
func (r *rig) over() bool {
	n, err := redistest.CountTasks(r.t.Context(), r.rdb, queue)
	if err != nil || n.Pending+n.Active+n.Scheduled+n.Retry > 0 {
		return false
	}
	s, err := r.store.TaskStatus(r.t.Context(), r.task.Key)
	return err == nil && s.Finished
}
