package intake

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/internal/redisconn"
	"reprise/internal/redistest"
	"reprise/internal/testaudio"
	"reprise/store"
	"reprise/tasks"
)

// rig is an Intake on a Redis and a store of its own. Its clock is now.
type rig struct {
	*Intake
	t     *testing.T
	rdb   *redis.Client
	store *store.Store
	dir   string
	now   time.Time
}

func setup(t *testing.T) *rig {
	t.Helper()
	rdb := redistest.DB(t)
	dir := t.TempDir()
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + filepath.Join(dir, "store.db")
	st, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	b := &rig{t: t, rdb: rdb, store: st, dir: dir, now: time.Now()}
	b.Intake, err = New(Options{Redis: rdb, Store: st, Now: func() time.Time { return b.now }})
	require.NoError(t, err)
	return b
}

func (b *rig) file(name, seed string) string {
	return put(b.t, b.dir, name, testaudio.WAV(200*time.Millisecond, seed))
}

func (b *rig) plan(req Request, args ...string) *Plan {
	b.t.Helper()
	if req.Path == "" {
		req.Path = tasks.Recognize
	}
	p, err := b.Plan(b.t.Context(), req, args, nil)
	require.NoError(b.t, err)
	return p
}

func (b *rig) enqueue(req Request, args ...string) *Plan {
	b.t.Helper()
	p := b.plan(req, args...)
	require.NoError(b.t, b.Enqueue(b.t.Context(), p, nil))
	return p
}

func (b *rig) counts() redistest.Counts {
	b.t.Helper()
	c, err := redistest.CountTasks(b.t.Context(), b.rdb, "recognize")
	require.NoError(b.t, err)
	return c
}

// work runs a worker that settles every task with a verdict, until the plan has finished.
func (b *rig) work(verdict tasks.Verdict, outcome tasks.Outcome, final bool, p *Plan) {
	b.t.Helper()
	server := asynq.NewServerFromRedisClient(b.rdb, asynq.Config{
		Queues: map[string]int{"recognize": 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond,
	})
	require.NoError(b.t, server.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		pl, err := tasks.Decode(task.Type(), task.Payload())
		if err != nil {
			return err
		}
		st, err := b.store.TaskStatus(ctx, pl.Key)
		if err != nil {
			return err
		}
		s := store.Settlement{Key: pl.Key, Path: pl.Path, Generation: st.Generation, Finished: true, Verdict: verdict, Outcome: outcome,
			Reason: string(outcome) + ": test", Final: final, At: b.now}
		if verdict == tasks.Done {
			s.Result = json.RawMessage(`{"artist":"A","title":"T"}`)
		}
		if err := b.store.Settle(ctx, s); err != nil || verdict == tasks.Done {
			return err
		}
		return errors.Join(errors.New(string(outcome)), asynq.SkipRetry)
	})))
	require.NoError(b.t, b.Wait(b.t.Context(), p, func(Result) {}))
	proctest.Eventually(b.t, func() bool { c := b.counts(); return c.Pending+c.Active == 0 })
	server.Shutdown()
}

func statuses(p *Plan) (out []Status) {
	for _, it := range p.Items {
		out = append(out, it.Status)
	}
	return out
}

func TestRepeatedEnqueueQueuesEachInputOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, c := b.file("a.wav", "1"), b.file("c.wav", "2")
	same := b.file("same.wav", "1")
	p := b.enqueue(Request{}, a, same, c, filepath.Join(b.dir, "no.wav"))
	require.Equal(t, []Status{Queued, SameContent, Queued, Refused}, statuses(p))
	require.Equal(t, int64(2), p.Counts().Units)
	require.Equal(t, 2, b.counts().Pending)
	rows, err := b.store.Batch(t.Context(), p.Batch)
	require.NoError(t, err)
	require.Len(t, rows, 3, "an input with the same content is a submission of its own")

	again := b.plan(Request{}, a, c)
	require.Equal(t, []Status{AlreadyQueued, AlreadyQueued}, statuses(again), "a plan reports what is queued")
	again = b.enqueue(Request{}, a, c, same)
	require.Equal(t, []Status{AlreadyQueued, AlreadyQueued, AlreadyQueued}, statuses(again))
	require.Equal(t, 2, b.counts().Total())
	forced := b.enqueue(Request{Force: true}, a)
	require.Equal(t, []Status{AlreadyQueued}, statuses(forced), "a queued task needs no force")

	b.work(tasks.Done, tasks.Match, false, again)
	known := b.enqueue(Request{}, a, c)
	require.Equal(t, []Status{AlreadyDone, AlreadyDone}, statuses(known))
	require.JSONEq(t, `{"artist":"A","title":"T"}`, string(known.Items[0].Result))
	require.Zero(t, known.Counts().Units)
	var rowsSeen []Result
	require.NoError(t, b.Wait(t.Context(), known, func(r Result) { rowsSeen = append(rowsSeen, r) }))
	require.Len(t, rowsSeen, 2)
	require.True(t, rowsSeen[0].Cached)
}

func TestTaskRegisteredBeforeACrashIsQueuedByTheNextRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.file("a.wav", "1")
	p := b.plan(Request{}, a)
	sub, err := b.submission(p, 0)
	require.NoError(t, err)
	_, err = b.store.Register(t.Context(), []store.Submission{sub})
	require.NoError(t, err)
	// The process dies here.
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(Request{}, a)))
	require.Equal(t, 1, b.counts().Pending)
}

func TestNextRunQueuesAgainAfterRedisLostItsData(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.file("a.wav", "1")
	b.enqueue(Request{}, a)
	require.NoError(t, b.rdb.FlushDB(t.Context()).Err())
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(Request{}, a)))
}

func TestForceQueuesASettledTaskAgainAndCanBeRepeatedAfterACrash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.file("a.wav", "1")
	b.work(tasks.Done, tasks.NoMatch, false, b.enqueue(Request{}, a))
	require.Equal(t, 1, b.counts().Completed)
	key := b.plan(Request{}, a).Items[0].Payload.Key

	// A first force dies between raising the generation and enqueuing.
	_, err := b.store.Reopen(t.Context(), key, 0)
	require.NoError(t, err)
	for _, force := range []bool{true, false} {
		p := b.enqueue(Request{Force: force}, a)
		if force {
			require.Equal(t, []Status{Queued}, statuses(p))
			require.Equal(t, int64(1), p.Counts().Units)
		} else {
			require.Equal(t, []Status{AlreadyQueued}, statuses(p))
		}
		require.Equal(t, redistest.Counts{Pending: 1}, b.counts())
	}
	b.work(tasks.Done, tasks.Match, false, b.plan(Request{}))
	proctest.Eventually(t, func() bool {
		st, err := b.store.TaskStatus(t.Context(), key)
		return err == nil && st.Finished && st.Generation == 1 && st.Outcome == tasks.Match
	})
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(Request{Force: true}, a)))
	st, err := b.store.TaskStatus(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, int64(2), st.Generation)
}

func TestNextRunCompletesAnInterruptedReopenWithoutForce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.file("a.wav", "1")
	p := b.enqueue(Request{}, a)
	b.work(tasks.Archive, tasks.Quota, false, p)
	_, err := b.store.Reopen(t.Context(), p.Items[0].Payload.Key, 0)
	require.NoError(t, err)
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(Request{}, a)))
	require.Equal(t, redistest.Counts{Pending: 1}, b.counts())
}

func TestArchivedTasksAreRefusedWithTheNextStep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		final bool
		want  string
	}{
		"permanently": {true, "failed permanently (invalid_audio: test): --force tries again, which is billed again"},
		"replayable":  {false, "is archived (invalid_audio: test): replay it with `inspect replay "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			a := b.file("a.wav", "1")
			b.work(tasks.Archive, tasks.InvalidAudio, c.final, b.enqueue(Request{}, a))
			p := b.enqueue(Request{}, a, b.file("twin.wav", "1"))
			require.Equal(t, []Status{Refused, Refused}, statuses(p))
			require.Contains(t, p.Items[1].Reason, c.want)
			require.NoError(t, b.Wait(t.Context(), p, nil))
			require.Equal(t, []Status{Queued}, statuses(b.enqueue(Request{Force: true}, a)))
			require.Equal(t, redistest.Counts{Pending: 1}, b.counts())
		})
	}
}

func TestForceOfARunningTaskIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.enqueue(Request{}, b.file("a.wav", "1"))
	key := p.Items[0].Payload.Key
	running, release := make(chan struct{}), make(chan struct{})
	server := asynq.NewServerFromRedisClient(b.rdb, asynq.Config{Queues: map[string]int{"recognize": 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond})
	require.NoError(t, server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		close(running)
		<-release
		return nil
	})))
	<-running
	// It is settled, but asynq does not know yet.
	require.NoError(t, b.store.Settle(t.Context(), store.Settlement{Key: key, Path: tasks.Recognize, Finished: true, Verdict: tasks.Done, Outcome: tasks.NoMatch, At: b.now}))
	p = b.enqueue(Request{Force: true}, filepath.Join(b.dir, "a.wav"))
	close(release)
	server.Shutdown()
	require.Equal(t, string(errRunning), p.Items[0].Reason)
	st, err := b.store.TaskStatus(t.Context(), key)
	require.NoError(t, err)
	require.Zero(t, st.Generation)
}

func TestTaskThatHasEndedInTheQueueButNotInTheStoreIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.file("a.wav", "1")
	p := b.enqueue(Request{}, a)
	require.NoError(t, asynq.NewInspectorFromRedisClient(b.rdb).ArchiveTask("recognize", p.Items[0].Payload.Key))
	p = b.enqueue(Request{}, a)
	require.Contains(t, p.Items[0].Reason, "is archived in asynq (no reason given)")
	require.NoError(t, b.Wait(t.Context(), p, nil), "Wait leaves it out")
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(Request{Force: true}, a)))
}

func TestLostReplyOfAnEnqueueIsNotAFailure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	srv := redistest.NewServer(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	rdb, err := redisconn.Queue("redis://"+proxy.Addr(), 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	b.Intake, err = New(Options{Redis: rdb, Store: b.store})
	require.NoError(t, err)
	b.enqueue(Request{}, b.file("first.wav", "9")) // loads asynq's script
	lost := proxy.LoseReply(redistest.Containing("audd:recognize"))
	p := b.enqueue(Request{}, b.file("a.wav", "1"))
	<-lost
	require.Equal(t, []Status{AlreadyQueued}, statuses(p))
	c, err := redistest.CountTasks(t.Context(), srv.Client(), "recognize")
	require.NoError(t, err)
	require.Equal(t, redistest.Counts{Pending: 2}, c)
}

func TestURLsAreShownWithoutSignatureAndReusedForADay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const one, two = "https://h/a.mp3?sig=sesame&exp=4000000000", "https://h/a.mp3?sig=other&exp=4000000001"
	p := b.enqueue(Request{}, one, two, "https://h/old?Expires=1500000000", "http://")
	require.Equal(t, []Status{Queued, SameContent, Refused, Refused}, statuses(p))
	require.Equal(t, "https://h/a.mp3", p.Items[0].Name)
	require.Equal(t, int64(4000000000), p.Items[0].Payload.Input.ExpiresAt)
	require.Equal(t, "is a signed URL that expired at 2017-07-14T02:40:00Z: get a new one", p.Items[2].Reason)
	require.Equal(t, "cannot be queued: input url: must be an http or https URL", p.Items[3].Reason)
	rows, err := b.store.Batch(t.Context(), p.Batch)
	require.NoError(t, err)
	require.NotContains(t, rows[0].Submission.Name, "sesame")
	b.work(tasks.Done, tasks.Match, false, p)
	require.Equal(t, []Status{AlreadyDone}, statuses(b.enqueue(Request{}, one)))
	b.now = b.now.Add(25 * time.Hour)
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(Request{}, one)))
}

func TestEnterpriseNeedsABoundOnUnits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := put(t, b.dir, "long.wav", testaudio.WAV(61*time.Second, "1"))
	raw := put(t, b.dir, "x.caf", append([]byte("caff\x00\x01\x00\x00data"), make([]byte, 60)...))
	every, skip := 1, 4
	for name, c := range map[string]struct {
		req   Request
		arg   string
		want  Status
		units int64
	}{
		"measured":                  {Request{}, long, ToQueue, 6},
		"measured, scanned in part": {Request{Params: tasks.Params{Every: &every, Skip: &skip}}, long, ToQueue, 2},
		"measured within the bound": {Request{MaxUnits: 6}, long, ToQueue, 6},
		"measured beyond the bound": {Request{MaxUnits: 5}, long, Refused, 0},
		"not measurable":            {Request{}, raw, Refused, 0},
		"not measurable, bounded":   {Request{MaxUnits: 9}, raw, ToQueue, 9},
		"URL":                       {Request{}, "https://h/x", Refused, 0},
		"URL, bounded":              {Request{MaxUnits: 9}, "https://h/x", ToQueue, 9},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Path = tasks.Enterprise
			p := b.plan(c.req, c.arg)
			require.Equal(t, []Status{c.want}, statuses(p), p.Items[0].Reason)
			require.Equal(t, c.units, p.Items[0].Units)
		})
	}
}

func TestInvalidRequestOrOptionsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Plan(t.Context(), Request{Path: tasks.Recognize, Params: tasks.Params{Return: []string{"napster"}}}, nil, nil)
	require.ErrorContains(t, err, "return: ")
	_, err = b.Plan(t.Context(), Request{Path: tasks.Enterprise, MaxUnits: -1}, nil, nil)
	require.ErrorContains(t, err, "max_units")
	_, err = b.Plan(t.Context(), Request{Path: tasks.Upload}, nil, nil)
	require.Error(t, err)
	_, err = New(Options{})
	require.ErrorContains(t, err, "Store is missing")
}

func TestCancelledEnqueueKeepsQueuedTasksAndContinuesLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range registerChunk + 50 {
		put(t, b.dir, filepath.Join("many", string(rune('a'+i/26))+string(rune('a'+i%26))+".wav"), testaudio.WAV(10*time.Millisecond, strconv.Itoa(i)))
	}
	p := b.plan(Request{}, filepath.Join(b.dir, "many"))
	ctx, cancel := context.WithCancel(t.Context())
	err := b.Enqueue(ctx, p, func(Progress) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, map[Status]int{Queued: registerChunk, ToQueue: 50}, p.Counts().ByStatus)
	require.Equal(t, registerChunk, b.counts().Pending)
	var last Progress
	p = b.plan(Request{}, filepath.Join(b.dir, "many"))
	require.Equal(t, map[Status]int{AlreadyQueued: registerChunk, ToQueue: 50}, p.Counts().ByStatus)
	require.NoError(t, b.Enqueue(t.Context(), p, func(pr Progress) {
		if pr.Done == pr.Total {
			last = pr
		}
	}))
	require.Equal(t, registerChunk+50, last.Done)
	require.Equal(t, registerChunk+50, b.counts().Pending)
	_, err = b.Plan(ctx, Request{Path: tasks.Recognize}, []string{b.dir}, nil)
	require.ErrorIs(t, err, context.Canceled)
}
