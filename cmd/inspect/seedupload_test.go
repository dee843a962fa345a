package main

import (
	"context"
	"strconv"
	"time"

	"github.com/hibiken/asynq"

	"reprise/idempotency"
	"reprise/idempotency/redismark"
	"reprise/store"
	"reprise/tasks"
)

// track is the payload of the upload to slot n of source main.
func track(n int) tasks.Payload {
	id := int64(n)
	in := tasks.Input{Kind: tasks.URLInput, URL: "https://example.com/track-" + strconv.Itoa(n) + ".mp3"}
	p, err := tasks.New(tasks.Upload, in, tasks.Params{AudioID: &id, Source: "main"}, 0)
	if err != nil {
		panic(err) // a bug of this test
	}
	return p
}

// upload NAME N AGE sends the track to slot N that long ago and leaves it
// uncertain: its task is held. NAME gets its key.
func (w world) upload(ctx context.Context, args []string) {
	n, err := strconv.Atoi(args[1])
	w.ts.Check(err)
	age, err := time.ParseDuration(args[2])
	w.ts.Check(err)
	st := w.open(ctx)
	defer st.Close()
	ledger, err := idempotency.New(ctx, st.DB(), idempotency.DefaultConfig())
	w.ts.Check(err)
	p, at := track(n), time.Now().Add(-age)
	w.ts.Setenv(args[0], p.Key)
	_, err = ledger.Claim(ctx, idempotency.Claim{Source: "main", AudioID: int64(n), Key: p.Key, By: "ops", At: at})
	w.ts.Check(err)
	got, err := ledger.Latch(ctx, idempotency.LatchRequest{Key: p.Key, AttemptID: "attempt-" + p.Key, Source: "main", AudioID: int64(n), Timeout: tasks.Upload.CallTimeout(), At: at})
	w.ts.Check(err)
	_, err = ledger.Conclude(ctx, "attempt-"+p.Key, idempotency.Conclusion{Effect: tasks.LatchUncertain, Outcome: tasks.Unavailable, Reason: "unavailable: HTTP 503", RequestID: "req-77", At: at})
	w.ts.Check(err)
	w.ts.Check(redismark.Write(ctx, w.rdb, got.Mark))

	task, err := p.Task("")
	w.ts.Check(err)
	_, err = st.Register(ctx, []store.Submission{{ID: "u-" + p.Key, Batch: "bup", Key: p.Key, Path: p.Path, Name: "track.mp3", Payload: task.Payload(), At: at}})
	w.ts.Check(err)
	w.ts.Check(st.Settle(ctx, store.Settlement{Key: p.Key, Path: p.Path, Finished: true, Verdict: tasks.Hold, Outcome: tasks.Unavailable, Reason: "unavailable: HTTP 503", At: at}))
	client := asynq.NewClientFromRedisClient(w.rdb)
	_, err = client.Enqueue(task)
	w.ts.Check(err)
	w.ts.Check(asynq.NewInspectorFromRedisClient(w.rdb).ArchiveTask("upload", p.Key))
}

// restored makes Redis remember a later entry than the ledger has.
func (w world) restored(ctx context.Context, _ []string) {
	mark, err := redismark.Read(ctx, w.rdb)
	w.ts.Check(err)
	mark.Seq, mark.Token = 41, "attempt-of-yesterday"
	w.ts.Check(redismark.Write(ctx, w.rdb, mark))
}
