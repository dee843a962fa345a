package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"reprise/admission"
	"reprise/internal/proctest"
	"reprise/internal/queue/asynqkey"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

// world is what a script's seeds work on.
type world struct {
	ts    *testscript.TestScript
	rdb   *redis.Client
	gates *admission.Gates
}

// seed WHAT ARGS… puts something there through the packages that own it.
func seed(ts *testscript.TestScript, _ bool, args []string) {
	opt, err := redis.ParseURL(ts.Getenv("REDIS"))
	ts.Check(err)
	w := world{ts: ts, rdb: redis.NewClient(opt)}
	defer w.rdb.Close()
	cfg := admission.DefaultConfig()
	cfg.Sources = []admission.SourceConfig{{Name: "main"}, {Name: "spare"}}
	cfg.Groups = map[string]admission.Group{"archive": {Ceiling: 0.7}}
	w.gates, err = admission.New(w.rdb, cfg)
	ts.Check(err)
	defer w.gates.Close()
	seeds := map[string]func(context.Context, []string){
		"limits": w.limits, "queue": w.queue, "flag": w.flag, "auto": w.auto,
		"spent": w.spent, "call": w.call, "breaker": w.breaker, "halt": w.halt, "archived": w.archived, "batch": w.batch, "emptied": w.emptied,
		"short": w.short, "key": w.keyInto, "active": w.active, "file": w.file, "upload": w.upload, "restored": w.restored,
	}
	do, ok := seeds[args[0]]
	if !ok {
		ts.Fatalf("no seed %s", args[0])
	}
	do(context.Background(), args[1:])
}

// limits are those a worker with two sources and a group seeds.
func (w world) limits(ctx context.Context, _ []string) {
	_, err := w.gates.SeedLimits(ctx)
	w.ts.Check(err)
}

// queue QUEUE N enqueues clips 1 … N.
func (w world) queue(_ context.Context, args []string) {
	n, err := strconv.Atoi(args[1])
	w.ts.Check(err)
	client := asynq.NewClientFromRedisClient(w.rdb)
	for i := range n {
		_, group, err := tasks.SplitQueue(args[0])
		w.ts.Check(err)
		task, err := clip(i + 1).Task(group)
		w.ts.Check(err)
		_, err = client.Enqueue(task)
		w.ts.Check(err)
	}
}

// flag QUEUE on|off changes asynq's flag, as its web page does.
func (w world) flag(_ context.Context, args []string) {
	inspector := asynq.NewInspectorFromRedisClient(w.rdb)
	if args[1] == "on" {
		w.ts.Check(inspector.PauseQueue(args[0]))
		return
	}
	w.ts.Check(inspector.UnpauseQueue(args[0]))
}

// auto QUEUE GATE adds an automatic pause reason, as a worker does.
func (w world) auto(ctx context.Context, args []string) {
	_, _, err := admission.NewPauses(w.rdb, admission.DefaultPrefix).Add(ctx, args[0], admission.PauseReason{
		Name: admission.AutoReason + args[1], Until: time.Now().Add(time.Hour), By: "worker-1", Evidence: "quota of main used up",
	})
	w.ts.Check(err)
}

// clip is the payload of the n-th clip: a file, or for even n a signed URL.
func clip(n int) tasks.Payload {
	in := tasks.Input{Kind: tasks.URLInput, URL: "https://example.com/clip-" + strconv.Itoa(n) + ".mp3?X-Amz-Signature=sesame"}
	p, err := tasks.New(tasks.Recognize, in, tasks.Params{}, 0)
	if err != nil {
		panic(err) // a bug of this test
	}
	return p
}

// spent N seeds the day's budget of main/recognize.
func (w world) spent(ctx context.Context, args []string) {
	n, err := strconv.ParseInt(args[0], 10, 64)
	w.ts.Check(err)
	r := request(1000)
	r.Pinned = "main"
	_, err = w.gates.Acquire(ctx, r)
	var missing *admission.MissingPeriods
	if !errors.As(err, &missing) {
		w.ts.Fatalf("no budget is missing: %v", err)
	}
	for _, p := range missing.Periods {
		_, err := w.gates.Seed(ctx, admission.PeriodUnits{Period: p, Spent: n})
		w.ts.Check(err)
	}
}

func request(n int) admission.Request {
	key := clip(n).Key
	return admission.Request{Key: key, AttemptID: key + "-" + time.Now().Format(time.RFC3339Nano), Path: tasks.Recognize, Units: 1, UnitsBounded: true}
}

// call SOURCE OUTCOME makes one call of clip 1: under way for match, else
// settled. A throttle blocks the source for an hour.
func (w world) call(ctx context.Context, args []string) {
	r := request(1)
	r.Pinned = args[0]
	if args[1] == string(tasks.Throttled) {
		r = request(2)
		r.Pinned = args[0]
	}
	p, err := w.gates.Acquire(ctx, r)
	w.ts.Check(err)
	if args[1] == string(tasks.Throttled) {
		w.ts.Check(w.gates.Settle(ctx, p, admission.CallReport{Outcome: tasks.Throttled, Channel: tasks.ChannelExcluded, RetryAfter: time.Hour}))
	}
}

// breaker SOURCE/PATH fails until the breaker opens.
func (w world) breaker(ctx context.Context, args []string) {
	source, path, _ := strings.Cut(args[0], "/")
	for i := range 5 {
		r := request(i + 10)
		r.Pinned, r.Path = source, tasks.Path(path)
		p, err := w.gates.Acquire(ctx, r)
		w.ts.Check(err)
		w.ts.Check(w.gates.Settle(ctx, p, admission.CallReport{Outcome: tasks.Unavailable, Channel: tasks.ChannelFailure, Counted: true, UnitsUsed: 1, PossiblyBilled: true}))
	}
}

// halt SOURCE/PATH REASON halts as a worker does.
func (w world) halt(ctx context.Context, args []string) {
	source, path, _ := strings.Cut(args[0], "/")
	_, err := w.gates.Halt(ctx, admission.Halt{Source: source, Path: tasks.Path(path), Reason: args[1], By: "worker-1", ProbeAfter: time.Hour})
	w.ts.Check(err)
}

// open opens the script's store, making it if it must.
func (w world) open(ctx context.Context) *store.Store {
	cfg := store.DefaultConfig()
	cfg.URL = w.ts.Getenv("REPRISE_STORE_URL")
	st, err := store.Open(ctx, cfg)
	w.ts.Check(err)
	return st
}

// archived N OUTCOME SOURCE archives clips 101 … after one call each.
func (w world) archived(ctx context.Context, args []string) {
	n, err := strconv.Atoi(args[0])
	w.ts.Check(err)
	for i := range n {
		w.settle(ctx, settled{clip: 101 + i, name: "clip.mp3", verdict: tasks.Archive, outcome: tasks.Outcome(args[1]), source: args[2], units: 0})
	}
}

// batch is b7k2qdx: six inputs, five of them with their verdict.
func (w world) batch(ctx context.Context, _ []string) {
	cent := 0.005
	for _, s := range []settled{
		{clip: 1, name: "one.mp3", externalID: "order-1", verdict: tasks.Done, outcome: tasks.Match, source: "main", units: 1, cost: &cent,
			result: `{"artist":"Paper Boats","title":"Adrift"}`},
		{clip: 2, name: "two.mp3", verdict: tasks.Done, outcome: tasks.NoMatch, source: "main", units: 1, result: `null`},
		{clip: 3, name: "bad.mp3", verdict: tasks.Archive, outcome: tasks.InvalidAudio, final: true, source: "main", units: 1},
		{clip: 6, name: "shaky.mp3", verdict: tasks.Archive, outcome: tasks.Unavailable, source: "spare", units: 1, billed: true},
		{clip: 4, name: "late.mp3", externalID: "order-4", verdict: tasks.Archive, outcome: tasks.Quota, source: "main"},
		{clip: 5, name: "https://example.com/clip-5.mp3"},
	} {
		s.batch = "b7k2qdx"
		w.settle(ctx, s)
	}
}

// emptied empties the queue, as a crash right before enqueuing leaves it.
func (w world) emptied(_ context.Context, _ []string) {
	inspector := asynq.NewInspectorFromRedisClient(w.rdb)
	_, err := inspector.DeleteAllPendingTasks("recognize")
	w.ts.Check(err)
}

// keyInto NAME N puts the key of the n-th clip into the environment.
func (w world) keyInto(_ context.Context, args []string) {
	n, err := strconv.Atoi(args[1])
	w.ts.Check(err)
	w.ts.Setenv(args[0], clip(n).Key)
}

// short NAME KEY puts the beginning of a key into the environment.
func (w world) short(_ context.Context, args []string) { w.ts.Setenv(args[0], args[1][:18]) }

// settled is a clip with its verdict.
type settled struct {
	clip       int
	batch      string
	name       string
	externalID string
	verdict    tasks.Verdict
	outcome    tasks.Outcome
	final      bool
	source     string
	units      int64
	cost       *float64
	billed     bool
	result     string
	at         time.Time
}

func (w world) settle(ctx context.Context, s settled) {
	st := w.open(ctx)
	defer st.Close()
	p := clip(s.clip)
	task, err := p.Task("")
	w.ts.Check(err)
	if s.batch == "" {
		s.batch = "b0"
	}
	if s.at.IsZero() {
		s.at = time.Now()
	}
	_, err = st.Register(ctx, []store.Submission{{
		ID: s.batch + "-" + strconv.Itoa(s.clip), Batch: s.batch, Key: p.Key, Path: p.Path, Name: s.name, ExternalID: s.externalID, Payload: task.Payload(), At: s.at,
	}})
	w.ts.Check(err)
	if s.verdict == "" {
		return
	}
	reason := string(s.outcome) + ": said so"
	set := store.Settlement{
		Key: p.Key, Path: p.Path, Queue: "recognize", Finished: true, Verdict: s.verdict, Outcome: s.outcome, Reason: reason, Final: s.final, At: s.at,
		Call: &store.Call{
			AttemptID: "attempt-" + p.Key, Key: p.Key, Source: s.source, Path: p.Path, Outcome: s.outcome, Verdict: s.verdict, Phase: "answered",
			Units: s.units, UnitBasis: "estimated", PossiblyBilled: s.billed, Cost: s.cost, RequestID: "req-8c1", Reason: reason, At: s.at,
		},
	}
	if s.result != "" {
		set.Result = []byte(s.result)
	}
	w.ts.Check(st.Settle(ctx, set))
}

// active waits until a worker holds a task of the recognize queue.
func (w world) active(ctx context.Context, _ []string) {
	taken := proctest.Poll(time.Minute, func() bool {
		c, err := redistest.CountTasks(ctx, w.rdb, "recognize")
		return err == nil && c.Active == 1 && w.rdb.ZCard(ctx, asynqkey.Servers).Val() == 1 // the worker may take a task before it registers
	})
	if !taken {
		w.ts.Fatalf("no task of recognize is active")
	}
}

// hold is a worker for scripts: it takes one task and holds it until it is stopped.
func hold() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	opt, err := asynq.ParseRedisURI(os.Getenv("REPRISE_REDIS_URL"))
	if err != nil {
		panic(err) // a bug of this test
	}
	server := asynq.NewServer(opt, asynq.Config{
		Concurrency: 1, Queues: map[string]int{"recognize": 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond, ShutdownTimeout: time.Second,
	})
	if err := server.Start(asynq.HandlerFunc(func(task context.Context, _ *asynq.Task) error {
		select {
		case <-ctx.Done():
		case <-task.Done():
		}
		return errors.New("held")
	})); err != nil {
		panic(err)
	}
	<-ctx.Done()
	server.Shutdown()
}

// file NAME registers a file for recognize by its content, and queues nothing.
func (w world) file(ctx context.Context, args []string) {
	data := []byte(w.ts.ReadFile(args[0]))
	sum := sha256.Sum256(data)
	in := tasks.Input{Kind: tasks.FileInput, Path: w.ts.MkAbs(args[0]), Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	p, err := tasks.New(tasks.Recognize, in, tasks.Params{}, 0)
	w.ts.Check(err)
	task, err := p.Task("")
	w.ts.Check(err)
	st := w.open(ctx)
	defer st.Close()
	_, err = st.Register(ctx, []store.Submission{{ID: "f1", Batch: "bf", Key: p.Key, Path: p.Path, Name: "elsewhere", Payload: task.Payload(), At: time.Now()}})
	w.ts.Check(err)
}
