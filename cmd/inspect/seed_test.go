package main

import (
	"context"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"reprise/admission"
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
	cfg.Groups = map[string]admission.Group{"archive": {Share: 0.7}}
	w.gates, err = admission.New(w.rdb, cfg)
	ts.Check(err)
	defer w.gates.Close()
	seeds := map[string]func(context.Context, []string){
		"limits": w.limits, "queue": w.queue, "flag": w.flag, "auto": w.auto,
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

// flag QUEUE on|off changes asynq's flag as its page would.
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
	_, _, err := w.gates.Pauses().Add(ctx, args[0], admission.PauseReason{
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
