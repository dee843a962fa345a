// Package rig starts what the processes of Reprise need in a test: a redis-server behind a proxy, a SQLite
// store and the AudD simulator.
package rig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
)

// Rig belongs to one test. Its methods fail the test on an error, so call them from the test's goroutine.
type Rig struct {
	T         *testing.T
	Server    *redistest.Server
	Proxy     *redistest.Proxy // in front of Server; Env points commands at it
	Redis     *redis.Client    // connected to Server directly
	Inspector *asynq.Inspector
	Sim       *auddsim.Server
	Store     *store.Store // the test's own connection; it waits for locks
	Dir       string
	Token     string // of the only source
}

// New starts a rig. Every content matches unless cfg says otherwise.
func New(t *testing.T, cfg auddsim.Config, redisOptions ...redistest.Option) *Rig {
	t.Helper()
	if cfg.MatchShare == 0 {
		cfg.MatchShare = 1
	}
	r := Bare(t, redisOptions...)
	r.Sim = auddsim.Start(t, cfg)
	r.OpenStore()
	return r
}

// Bare starts a rig without a simulator and without a store; its folder for the store exists.
func Bare(t *testing.T, redisOptions ...redistest.Option) *Rig {
	t.Helper()
	r := &Rig{T: t, Server: redistest.NewServer(t, redisOptions...), Dir: t.TempDir(), Token: "rig-token-7d1f"}
	r.Proxy, r.Redis = redistest.NewProxy(t, r.Server.Addr()), r.Server.Client()
	r.Inspector = asynq.NewInspectorFromRedisClient(r.Redis)
	require.NoError(t, os.Mkdir(filepath.Dir(r.StoreFile()), 0o700))
	return r
}

// OpenStore opens the store and creates its tables if they are missing.
func (r *Rig) OpenStore() {
	r.T.Helper()
	c := store.DefaultConfig()
	c.URL, c.BusyTimeout = r.StoreURL(), proctest.Patience
	s, err := store.Open(r.T.Context(), c)
	require.NoError(r.T, err)
	r.T.Cleanup(func() { require.NoError(r.T, s.Close()) })
	r.Store = s
}

// StoreFile returns the SQLite file. Its folder has no other files before the store is opened.
func (r *Rig) StoreFile() string { return filepath.Join(r.Dir, "store", "reprise.db") }

// StoreURL returns the store's URL for commands.
func (r *Rig) StoreURL() string { return "sqlite:" + r.StoreFile() }

// RedisURL returns the URL of Redis behind the proxy.
func (r *Rig) RedisURL() string {
	return strings.Replace(r.Server.URL(), r.Server.Addr(), r.Proxy.Addr(), 1)
}

// Env returns the environment of a command: Redis behind the proxy, the store, the token and a JSON log at
// level debug. Of two values of a variable the later one counts, so callers append theirs.
func (r *Rig) Env() []string {
	return []string{
		"REPRISE_REDIS_URL=" + r.RedisURL(), "REPRISE_STORE_URL=" + r.StoreURL(), "AUDD_API_TOKEN=" + r.Token,
		"REPRISE_LOG_LEVEL=debug", "REPRISE_LOG_FORMAT=json",
	}
}

// Worker starts `worker run` against the simulator and waits until it is ready.
func (r *Rig) Worker(flags ...string) *proctest.Process {
	r.T.Helper()
	return r.WorkerWith(nil, flags...)
}

// WorkerWith starts a worker as Worker does, with more environment variables.
func (r *Rig) WorkerWith(env []string, flags ...string) *proctest.Process {
	r.T.Helper()
	args := append([]string{"run", "--admin", "127.0.0.1:0", "--base-url", r.Sim.URL, "--enterprise-url", r.Sim.EnterpriseURL}, flags...)
	p := proctest.Start(r.T, append(r.Env(), env...), "worker", args...)
	p.Line("ready", proctest.Patience)
	return p
}
