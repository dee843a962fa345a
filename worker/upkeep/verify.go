package upkeep

import (
	"context"
	"log/slog"
	"time"

	"reprise/idempotency"
	"reprise/internal/queue"
	"reprise/internal/timer"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker/record"
	"reprise/worker/warn"
)

// Verifier enqueues, for each uncertain upload whose policy is idempotency.VerifyRecognize, a recognition of its
// audio, as an ordinary task. Its settlement reports to the ledger what AudD found: the upload's audio_id settles
// the upload, everything else leaves it to an operator.
type Verifier struct {
	Ledger *idempotency.Ledger
	Queues *queue.Client
	Store  Store
	Delay  time.Duration // AudD's time to index an upload, and the time between tries
	Log    *slog.Logger
	Warn   *warn.Limiter
}

const (
	verifyInterval = 5 * time.Second
	// verifyTries is the largest number of recognitions of one upload, each of which costs a unit.
	verifyTries = 3
	// settleInterval is how often held uploads are compared with the ledger.
	settleInterval = time.Minute
	// holdPage is how many held uploads are read at a time.
	holdPage = 500
)

// Run verifies uploads until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	var compared time.Time
	timer.Every(ctx, verifyInterval, func(ctx context.Context) {
		if time.Since(compared) > settleInterval {
			compared = time.Now()
			v.Warn.Warn(ctx, "verify", "held uploads could not be compared with the ledger", v.settleArrived(ctx))
		}
		uncertain, err := v.Ledger.List(ctx, idempotency.Filter{
			States: []idempotency.State{idempotency.Uncertain}, Verify: idempotency.VerifyRecognize,
		})
		v.Warn.Warn(ctx, "verify", "uncertain uploads cannot be listed", err)
		for _, e := range uncertain {
			v.Warn.Warn(ctx, "verify", "an uncertain upload could not be verified", v.verify(ctx, e))
		}
	})
}

// verify enqueues the next recognition of an upload when the previous one has its verdict and the next one is
// due. BeginVerify counts a try before its task exists; if a crash prevents the task, it is enqueued at the next
// tick.
func (v *Verifier) verify(ctx context.Context, e idempotency.Entry) error {
	if time.Now().Before(e.Send.EndedAt.Add(v.Delay)) {
		return nil
	}
	try := e.Send.Tries
	if try > 0 {
		task, err := v.task(ctx, e, try)
		if err != nil {
			return err
		}
		st, err := v.Store.TaskStatus(ctx, task.Key)
		if err != nil {
			return err
		}
		if !st.Finished {
			_, err = v.Queues.Enqueue(ctx, task, "")
			return err
		}
	}
	if try >= verifyTries {
		return nil
	}
	task, err := v.task(ctx, e, try+1)
	if err != nil {
		return err
	}
	begun, err := v.Ledger.BeginVerify(ctx, idempotency.VerifyRequest{
		Key: e.Key, Generation: e.Generation, Delay: v.Delay, Tries: verifyTries, At: time.Now(),
	})
	if err != nil || !begun {
		return err
	}
	v.Log.Info("a recognition is enqueued to verify an uncertain upload", "task_id", e.Key, "recognition", task.Key, "try", task.Params.Verifies.Try)
	_, err = v.Queues.Enqueue(ctx, task, "")
	return err
}

// task returns the recognition of an upload's audio at the source that it was sent to.
func (v *Verifier) task(ctx context.Context, e idempotency.Entry, try int) (tasks.Payload, error) {
	raw, err := v.Store.Payload(ctx, e.Key)
	if err != nil {
		return tasks.Payload{}, err
	}
	upload, err := tasks.Decode(tasks.Upload.Type(), raw)
	if err != nil {
		return tasks.Payload{}, err
	}
	return tasks.New(tasks.Recognize, upload.Input, tasks.Params{
		Source: e.Source, Verifies: &tasks.Verification{Key: e.Key, Generation: e.Generation, Try: try},
	}, 0)
}

// settleArrived settles uploads that are held although the ledger has them as settled: the worker died or lost
// the store between the two, or an operator resolved them.
func (v *Verifier) settleArrived(ctx context.Context) error {
	page := store.TaskFilter{Path: tasks.Upload, Verdict: tasks.Hold, Limit: holdPage}
	for {
		rows, err := v.Store.Tasks(ctx, page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			st, err := v.Ledger.Status(ctx, row.Key)
			if err != nil {
				return err
			}
			if st.State != idempotency.Settled {
				continue
			}
			if err := v.Store.Settle(ctx, record.Arrived(st.Send, row.Generation, time.Now())); err != nil {
				return err
			}
			v.Log.Info("a held upload is settled because the upload ledger records it as settled", "task_id", row.Key)
		}
		if len(rows) < holdPage {
			return nil
		}
		last := rows[len(rows)-1]
		page.AfterAt, page.AfterKey = last.UpdatedAt, last.Key
	}
}
