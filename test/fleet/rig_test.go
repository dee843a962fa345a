package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

// rig is what a fleet works on, one of each per test.
type rig struct {
	t       *testing.T
	server  *redistest.Server
	proxy   *redistest.Proxy // what workers connect to
	rdb     *redis.Client    // past the proxy
	sim     *auddsim.Server
	dir     string
	store   *store.Store
	gates   *admission.Gates // as another process (inspect) sees them
	inspect *asynq.Inspector
	workers []*fellow
}

// fellow is one worker of this process.
type fellow struct {
	*worker.Worker
	name string
	log  proctest.Output
	stop func()
}

const (
	mainSource = "main"
	mainToken  = "fleet-token-4e7a"
	recognize  = "recognize" // the queue of no group
	slots      = 8           // of a worker
)

// newRig: every content matches unless cfg says otherwise.
func newRig(t *testing.T, cfg auddsim.Config) *rig {
	t.Helper()
	if cfg.MatchShare == 0 {
		cfg.MatchShare = 1
	}
	server := redistest.NewServer(t)
	r := &rig{t: t, server: server, rdb: server.Client(), sim: auddsim.Start(t, cfg), dir: t.TempDir()}
	r.proxy = redistest.NewProxy(t, server.Addr())
	sc := store.DefaultConfig()
	sc.URL = r.storeURL()
	s, err := store.Open(t.Context(), sc)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r.store, r.inspect = s, asynq.NewInspectorFromRedisClient(r.rdb)
	r.gates, err = admission.New(r.rdb, admission.DefaultConfig())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.gates.Close()) })
	t.Cleanup(r.tell)
	return r
}

func (r *rig) storeURL() string { return "sqlite:" + filepath.Join(r.dir, "reprise.db") }

// redisURL is Redis behind the proxy.
func (r *rig) redisURL() string {
	return strings.Replace(r.server.URL(), r.server.Addr(), r.proxy.Addr(), 1)
}

// tell shows what the workers logged when the test has failed.
func (r *rig) tell() {
	if !r.t.Failed() {
		return
	}
	for _, f := range r.workers {
		r.t.Logf("worker %s:\n%s", f.name, f.log.Tail())
	}
}

// options are those of every worker here: attempts are not what is tested, and
// a permit outlives what a starved machine does to its worker.
func options(redisURL, baseURL string) worker.Options {
	o := worker.DefaultOptions()
	o.RedisURL, o.Admin.Addr = redisURL, ""
	o.Slots = worker.Slots{Recognize: slots}
	o.Sources = []worker.Source{account(mainSource, mainToken, baseURL)}
	o.Policy.MaxAttempts, o.Policy.MaxPossiblyBilled = 1000, 1000
	o.Policy.BackoffBase, o.Policy.BackoffMax = 100*time.Millisecond, time.Second
	o.Admission.PermitTTL, o.Admission.Timeout = 30*time.Second, 10*time.Second
	return o
}

func account(name, token, baseURL string) worker.Source {
	return worker.Source{Name: name, Token: func() string { return token }, BaseURL: baseURL + "/", EnterpriseURL: baseURL + "/enterprise/"}
}

// worker starts one more worker and waits until it takes tasks.
func (r *rig) worker(change func(*worker.Options)) *fellow {
	r.t.Helper()
	f := &fellow{name: fmt.Sprintf("w%d", len(r.workers)+1)}
	o := options(r.redisURL(), r.sim.URL)
	o.Log = slog.New(slog.NewJSONHandler(&f.log, nil))
	if change != nil {
		change(&o)
	}
	w, err := worker.New(r.t.Context(), o, r.store)
	require.NoError(r.t, err)
	f.Worker = w
	r.workers = append(r.workers, f)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var once sync.Once
	f.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				r.t.Errorf("worker %s: %s", f.name, err)
			}
			if err := w.Close(); err != nil {
				r.t.Errorf("close worker %s: %s", f.name, err)
			}
		})
	}
	r.t.Cleanup(f.stop)
	select {
	case <-w.Ready():
	case err := <-ended:
		ended <- err
		require.NoError(r.t, err, "worker %s did not start", f.name)
	}
	return f
}

// fleet starts n workers with the same options.
func (r *rig) fleet(n int, change func(*worker.Options)) {
	r.t.Helper()
	for range n {
		r.worker(change)
	}
}

// payloads are n tasks whose audio AudD would download: no files are needed.
func (r *rig) payloads(name string, n int) []tasks.Payload {
	r.t.Helper()
	out := make([]tasks.Payload, n)
	for i := range out {
		p, err := tasks.New(tasks.Recognize, tasks.Input{Kind: tasks.URLInput, URL: fmt.Sprintf("https://audio.test/%s-%05d.mp3", name, i)}, tasks.Params{}, 0)
		require.NoError(r.t, err)
		out[i] = p
	}
	return out
}

// enqueueAtOnce is how many connections fill a queue.
const enqueueAtOnce = 16

// enqueue fills a group's queue as fast as Redis takes it.
func (r *rig) enqueue(group string, payloads ...tasks.Payload) {
	r.t.Helper()
	rdb := r.server.Client()
	client := asynq.NewClientFromRedisClient(rdb)
	work := make(chan tasks.Payload)
	var filling sync.WaitGroup
	for range min(enqueueAtOnce, len(payloads)) {
		filling.Go(func() {
			for p := range work {
				task, err := p.Task(group)
				if err == nil {
					_, err = client.EnqueueContext(context.WithoutCancel(r.t.Context()), task)
				}
				if err != nil {
					r.t.Errorf("enqueue %s: %s", p.Key, err)
				}
			}
		})
	}
	for _, p := range payloads {
		work <- p
	}
	close(work)
	filling.Wait()
	require.False(r.t, r.t.Failed())
}

// send makes n tasks and enqueues them.
func (r *rig) send(group, name string, n int) []tasks.Payload {
	r.t.Helper()
	out := r.payloads(name, n)
	r.enqueue(group, out...)
	return out
}

// finished is how many of these tasks have each verdict; "" has none yet.
func (r *rig) finished(payloads []tasks.Payload) map[tasks.Verdict]int {
	r.t.Helper()
	out := map[tasks.Verdict]int{}
	for _, p := range payloads {
		s, err := r.store.TaskStatus(r.t.Context(), p.Key)
		require.NoError(r.t, err)
		if !s.Finished {
			s.Verdict = ""
		}
		out[s.Verdict]++
	}
	return out
}

// allDone waits until every task is done; what was archived may be replayed.
func (r *rig) allDone(payloads []tasks.Payload, within time.Duration) {
	r.t.Helper()
	left := payloads
	ok := eventually(within, func() bool {
		for len(left) > 0 {
			s, err := r.store.TaskStatus(r.t.Context(), left[0].Key)
			require.NoError(r.t, err)
			if !s.Finished || s.Verdict != tasks.Done {
				return false
			}
			left = left[1:]
		}
		return true
	})
	require.True(r.t, ok, "after %s the verdicts are %v, asynq has %+v", within, r.finished(payloads), r.counts(recognize))
}

// once makes sure that every task was called for once, by the simulator's log
// and by the call rows.
func (r *rig) once(payloads []tasks.Payload) {
	r.t.Helper()
	require.EqualValues(r.t, len(payloads), r.sim.Sums().Units, "units billed")
	calls, err := r.store.Calls(r.t.Context(), store.CallFilter{Limit: 10 * len(payloads)})
	require.NoError(r.t, err)
	rows := map[string]int{}
	for _, c := range calls {
		rows[c.Key] += int(c.Units)
	}
	for _, p := range payloads {
		require.Equal(r.t, 1, rows[p.Key], "units in the call rows of %s", p.Input.URL)
	}
}
