package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/hibiken/asynq"

	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

// settle is a worker for scripts, until it is stopped: it settles every task by
// its file's name. A recognition is a match for a.wav and twin.wav, archived
// for b.wav, else no match; an upload is uncertain for cut.wav, else settled.
func settle() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fail := func(err error) {
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
	}
	cfg := store.DefaultConfig()
	cfg.URL = os.Getenv("REPRISE_STORE_URL")
	st, err := store.Open(ctx, cfg)
	fail(err)
	ledger, err := idempotency.New(ctx, st.DB(), idempotency.DefaultConfig())
	fail(err)
	opt, err := asynq.ParseRedisURI(os.Getenv("REPRISE_REDIS_URL"))
	fail(err)
	server := asynq.NewServer(opt, asynq.Config{
		Queues: map[string]int{"recognize": 1, "upload": 1}, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond,
	})
	w := &settler{st, ledger}
	fail(server.Start(asynq.HandlerFunc(w.handle)))
	<-ctx.Done()
	server.Shutdown()
	fail(st.Close())
}

type settler struct {
	store  *store.Store
	ledger *idempotency.Ledger
}

func (w *settler) handle(ctx context.Context, task *asynq.Task) error {
	p, err := tasks.Decode(task.Type(), task.Payload())
	if err != nil {
		return err
	}
	status, err := w.store.TaskStatus(ctx, p.Key)
	if err != nil {
		return err
	}
	s := store.Settlement{Key: p.Key, Path: p.Path, Generation: status.Generation, Finished: true, Verdict: tasks.Done, Outcome: tasks.NoMatch, At: time.Now()}
	name := filepath.Base(p.Input.Path)
	switch {
	case p.Path == tasks.Upload:
		if err := w.upload(ctx, p, &s, name == "cut.wav"); err != nil {
			return err
		}
	case name == "a.wav", name == "twin.wav":
		s.Outcome, s.Result = tasks.Match, []byte(`{"artist":"Paper Boats","title":"Adrift"}`)
	case name == "b.wav":
		s.Verdict, s.Outcome, s.Reason, s.Final = tasks.Archive, tasks.InvalidAudio, "invalid_audio: AudD cannot read it", true
	}
	return w.store.Settle(ctx, s)
}

func (w *settler) upload(ctx context.Context, p tasks.Payload, s *store.Settlement, cut bool) error {
	attempt, _ := asynq.GetTaskID(ctx)
	attempt += time.Now().String()
	_, err := w.ledger.Latch(ctx, idempotency.LatchRequest{
		Key: p.Key, AttemptID: attempt, Source: p.Params.Source, AudioID: *p.Params.AudioID, SHA256: p.Input.SHA256,
		Timeout: time.Minute, At: time.Now(),
	})
	if err != nil {
		return err
	}
	effect := tasks.LatchSettled
	s.Outcome, s.Result = tasks.Uploaded, []byte("null")
	if cut {
		effect = tasks.LatchUncertain
		s.Verdict, s.Outcome, s.Reason, s.Result = tasks.Hold, tasks.Ambiguous, "ambiguous: cut off", nil
	}
	_, err = w.ledger.Conclude(ctx, attempt, idempotency.Conclusion{Effect: effect, Outcome: s.Outcome, Reason: s.Reason, At: time.Now()})
	return err
}
