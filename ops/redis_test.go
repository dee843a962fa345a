package ops

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

// newOps works on a Redis in which a worker with the sources main and spare and the group archive wrote its limits.
func newOps(t *testing.T) (*Ops, *redis.Client, *store.Store) {
	t.Helper()
	rdb := redistest.DB(t)
	cfg := admission.DefaultConfig()
	cfg.Sources = []admission.SourceConfig{{Name: "main"}, {Name: "spare"}}
	cfg.Groups = map[string]admission.Group{"archive": {}}
	g, err := admission.New(rdb, cfg)
	require.NoError(t, err)
	_, err = g.SeedLimits(t.Context())
	require.NoError(t, err)
	sc := store.DefaultConfig()
	sc.URL = "sqlite:" + filepath.Join(t.TempDir(), "r.db")
	st, err := store.Open(t.Context(), sc)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return New(Options{Redis: rdb, Queue: rdb, Store: st}), rdb, st
}

func TestChangesNeedLimitsInForce(t *testing.T) {
	t.Parallel()
	o := New(Options{Redis: redistest.DB(t)})
	_, err := o.Limits.Set(t.Context(), []string{"global.concurrency=5"}, "ops")
	require.ErrorIs(t, err, ErrNoLimits)
	_, err = o.Sources.Halt(t.Context(), HaltRequest{Targets: []string{"main/upload"}, Why: "x", By: "ops"})
	require.ErrorIs(t, err, ErrNoLimits)
	queues, err := o.Queues.List(t.Context())
	require.NoError(t, err)
	require.Len(t, queues, len(tasks.Paths))
}

func TestWrongNamesAreInputErrors(t *testing.T) {
	t.Parallel()
	o, _, _ := newOps(t)
	_, err := o.Limits.Set(t.Context(), []string{"main/recognize.concurency=5", "mian/upload.concurrency=5"}, "ops")
	require.ErrorAs(t, err, new(*InputError))
	require.ErrorContains(t, err, "did you mean concurrency?")
	require.ErrorContains(t, err, "did you mean main?")
	_, err = o.Sources.Resume(t.Context(), []string{"main/uplod"}, "ops")
	require.ErrorAs(t, err, new(*InputError))
	_, err = o.Queues.Pause(t.Context(), PauseRequest{Targets: []string{"recognise"}})
	require.ErrorAs(t, err, new(*InputError))
	_, err = o.Tasks.List(t.Context(), store.TaskFilter{Outcome: "quoat", Limit: 1})
	require.ErrorAs(t, err, new(*InputError))
	_, err = o.Tasks.Why(t.Context(), "nothing.mp3", 1)
	require.ErrorAs(t, err, new(*NotFoundError))
}

func TestLimitAndGroupChangesReportOldAndNewValues(t *testing.T) {
	t.Parallel()
	o, _, _ := newOps(t)
	change, err := o.Limits.Set(t.Context(), []string{"main/recognize.concurrency=20", "tuning.breaker_cooldown=10s"}, "alice_b")
	require.NoError(t, err)
	require.Equal(t, []LimitChange{
		{"main/recognize", "concurrency", "off", "20"}, {"tuning", "breaker_cooldown", "5s", "10s"},
	}, change.Changes)
	require.Equal(t, "alice_b", change.By)
	change, err = o.Limits.SetGroup(t.Context(), "ugc", []string{"weight=5", "source=spare"}, "ops")
	require.NoError(t, err)
	require.Equal(t, "ugc", change.NewGroup)
	require.Equal(t, []string{"recognize.ugc", "enterprise.ugc", "upload.ugc"}, change.Queues)
	groups, err := o.Limits.Groups(t.Context())
	require.NoError(t, err)
	require.Len(t, groups.Groups, 2)
	require.Equal(t, "spare", groups.Groups[1].Limits["source"])
}

func TestHaltExplainsTheTasksThatWaitForIt(t *testing.T) {
	t.Parallel()
	o, rdb, st := newOps(t)
	ctx := t.Context()
	p, err := tasks.New(tasks.Recognize, tasks.Input{Kind: tasks.URLInput, URL: "https://example.com/a.mp3?sig=sesame"}, tasks.Params{}, 0)
	require.NoError(t, err)
	task, err := p.Task("")
	require.NoError(t, err)
	_, err = asynq.NewClientFromRedisClient(rdb).Enqueue(task)
	require.NoError(t, err)
	_, err = st.Register(ctx, []store.Submission{{ID: "1", Batch: "b", Key: p.Key, Path: p.Path, Queue: "recognize", Payload: task.Payload(), At: time.Now()}})
	require.NoError(t, err)

	halts, err := o.Sources.Halt(ctx, HaltRequest{Targets: []string{"*/recognize"}, Why: "token leaked", By: "ops"})
	require.NoError(t, err)
	require.Len(t, halts.Halts, 2)
	require.Equal(t, "manual: token leaked", halts.Halts[0].Reason)
	require.EqualValues(t, 1, halts.Halts[0].Waiting)
	why, err := o.Tasks.Why(ctx, "https://example.com/a.mp3?sig=sesame", 5)
	require.ErrorAs(t, err, new(*NotFoundError), "the store has no name of it")
	require.Empty(t, why.Tasks)
	why, err = o.Tasks.Why(ctx, p.Key, 5)
	require.NoError(t, err)
	require.Equal(t, "WAITING", why.Tasks[0].State)
	require.Equal(t, "https://example.com/a.mp3", why.Tasks[0].Input)
	require.Equal(t, "no worker serves queue recognize on this Redis", why.Tasks[0].Because)
	list, err := o.Tasks.List(ctx, store.TaskFilter{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, why.Tasks[0].Because, list[0].WaitsFor, "a list gives the same reason")

	plan, err := o.Sources.ResumePlan(ctx, []string{"main/*"})
	require.NoError(t, err)
	require.Len(t, plan.Sources, 1)
	require.Equal(t, "halted: manual: token leaked", plan.Sources[0].Was)
	require.EqualValues(t, 1, *plan.Sources[0].Units)
	require.Nil(t, plan.Sources[0].Cost, "the price is unknown")
	_, err = o.Sources.Resume(ctx, []string{"*/*"}, "ops")
	require.NoError(t, err)
	halts, err = o.Sources.Halts(ctx)
	require.NoError(t, err)
	require.NotNil(t, halts.Halts[0].ProbeAt, "half-open: the next call probes it")
}

func TestPauseAndResumeReportTheReasons(t *testing.T) {
	t.Parallel()
	o, _, _ := newOps(t)
	changes, err := o.Queues.Pause(t.Context(), PauseRequest{Targets: []string{"recognize"}, By: "alice_b", Why: "lunch"})
	require.NoError(t, err)
	require.Len(t, changes, 2, "the path's queue and that of its group")
	require.True(t, changes[0].Changed)
	require.Contains(t, changes[0].Why, "manual by alice_b since")
	queues, err := o.Queues.List(t.Context())
	require.NoError(t, err)
	require.True(t, queues[0].Paused)
	require.Equal(t, "lunch", queues[0].Reasons[0].Evidence)
	changes, err = o.Queues.Resume(t.Context(), PauseRequest{Targets: []string{"recognize"}, Only: true})
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.False(t, changes[0].Paused)
}
