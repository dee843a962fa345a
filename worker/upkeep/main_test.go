package upkeep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/proctest"
	"reprise/internal/queue"
	"reprise/internal/queue/asynqkey"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker/warn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Wrap(m)) }

// rig has what the jobs work on, and a leader.
type rig struct {
	t      *testing.T
	rdb    *redis.Client
	queues *queue.Client
	gates  *admission.Gates
	store  *store.Store
	ledger *idempotency.Ledger
	leader *Leader
	log    *proctest.Output
	slog   *slog.Logger
	warn   *warn.Limiter
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, rdb: redistest.DB(t), log: &proctest.Output{}}
	r.slog = slog.New(slog.NewJSONHandler(r.log, nil))
	r.warn = warn.NewLimiter(r.slog)
	r.queues = queue.New(r.rdb, admission.DefaultPrefix)
	c := store.DefaultConfig()
	c.URL = "sqlite:" + filepath.Join(t.TempDir(), "store.db")
	var err error
	r.store, err = store.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.store.Close()) })
	r.ledger, err = idempotency.New(t.Context(), r.store.DB(), idempotency.DefaultConfig())
	require.NoError(t, err)
	a := admission.DefaultConfig()
	a.Sources = []admission.SourceConfig{{Name: "main"}}
	r.gates, err = admission.New(r.rdb, a)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.gates.Close()) })
	r.leader = NewLeader(r.rdb, "leader-of-"+t.Name())
	return r
}

// start runs a job until the test ends.
func (r *rig) start(run func(context.Context)) {
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	r.t.Cleanup(func() { cancel(); <-ended })
}

// task returns the n-th payload of a path and registers it in the store.
func (r *rig) task(path tasks.Path, n int) tasks.Payload {
	r.t.Helper()
	in := tasks.Input{Kind: tasks.FileInput, Path: "/clip.wav", Size: 9, SHA256: strings.Repeat("0", 60) + strconv.Itoa(1000+n)}
	params := tasks.Params{}
	if path == tasks.Upload {
		id := int64(n)
		params = tasks.Params{AudioID: &id, Source: "main"}
	}
	p, err := tasks.New(path, in, params, 0)
	require.NoError(r.t, err)
	raw, err := json.Marshal(p)
	require.NoError(r.t, err)
	_, err = r.store.Register(r.t.Context(), []store.Submission{{
		ID: p.Key, Batch: "b", Key: p.Key, Path: path, Queue: path.Queue(""), Payload: raw, At: time.Now(),
	}})
	require.NoError(r.t, err)
	return p
}

// settle stores the verdict of a task.
func (r *rig) settle(p tasks.Payload, v tasks.Verdict, o tasks.Outcome) {
	r.t.Helper()
	s := store.Settlement{
		Key: p.Key, Path: p.Path, Queue: p.Path.Queue(""), AttemptID: "dead-" + p.Key, Finished: true, Verdict: v, Outcome: o, Reason: string(o), At: time.Now(),
	}
	if v == tasks.Done {
		s.Result = json.RawMessage("null")
	}
	require.NoError(r.t, r.store.Settle(r.t.Context(), s))
}

// queued puts a task into its queue in a state.
func (r *rig) queued(p tasks.Payload, state queue.State) {
	r.t.Helper()
	ctx, name := r.t.Context(), p.Path.Queue("")
	added, err := r.queues.Enqueue(ctx, p, "")
	require.NoError(r.t, err)
	require.True(r.t, added)
	parts := map[queue.State]asynqkey.Part{queue.Archived: asynqkey.Archived, queue.Completed: asynqkey.Completed}
	switch state {
	case queue.Active:
		require.NoError(r.t, r.rdb.LMove(ctx, asynqkey.Of(name, asynqkey.Pending), asynqkey.Of(name, asynqkey.Active), "RIGHT", "LEFT").Err())
	case queue.Pending, queue.Scheduled, queue.Retry, queue.NotQueued: // it is pending
	case queue.Archived, queue.Completed:
		require.NoError(r.t, r.rdb.LRem(ctx, asynqkey.Of(name, asynqkey.Pending), 1, p.Key).Err())
		require.NoError(r.t, r.rdb.ZAdd(ctx, asynqkey.Of(name, parts[state]), redis.Z{Score: float64(time.Now().Unix()), Member: p.Key}).Err())
	}
	require.NoError(r.t, r.rdb.HSet(ctx, asynqkey.Task(name, p.Key), "state", string(state)).Err())
}

func (r *rig) state(p tasks.Payload) queue.State {
	r.t.Helper()
	task, err := r.queues.Task(r.t.Context(), p.Path.Queue(""), p.Key)
	if !errors.Is(err, queue.ErrNotFound) {
		require.NoError(r.t, err)
	}
	return task.State
}

// logged returns the value of a field in the first log line with a message; nil if there is none.
func (r *rig) logged(message, field string) any {
	for line := range bytes.Lines([]byte(r.log.String())) {
		var l map[string]any
		if json.Unmarshal(line, &l) == nil && l["msg"] == message {
			return l[field]
		}
	}
	return nil
}
