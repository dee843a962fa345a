package record

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/idempotency"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker/warn"
)

// Store is SQL as settlements use it; *store.Store implements it.
type Store interface {
	// Settle commits all settlements or none. Repeating it changes nothing.
	Settle(ctx context.Context, s ...store.Settlement) error
	// TaskStatus reads the status of a key. An unknown key is no error.
	TaskStatus(ctx context.Context, key string) (store.TaskStatus, error)
}

// Recorder stores settlements and reads verdicts. Safe for concurrent use.
type Recorder struct {
	store  Store
	ledger *idempotency.Ledger
	outbox outbox
	log    *slog.Logger
	warn   *warn.Limiter
	resume atomic.Int64 // Unix ms before which the store is not tried
}

// New returns a Recorder for s and, for uploads, ledger, which may be nil. The outbox is in Redis below
// admission's prefix.
func New(s Store, ledger *idempotency.Ledger, rdb redis.UniversalClient, prefix string, log *slog.Logger) *Recorder {
	return &Recorder{store: s, ledger: ledger, outbox: newOutbox(rdb, prefix, log), log: log, warn: warn.NewLimiter(log)}
}

const (
	storeTimeout  = 6 * time.Second
	outboxTimeout = 5 * time.Second
	// storePause is for how long the store is not tried after it was unavailable.
	storePause = time.Second
)

// Save stores an entry in SQL or, if SQL fails, in the outbox. After an error the entry is in neither.
func (r *Recorder) Save(ctx context.Context, e Entry) error {
	var storeErr error
	if time.Now().UnixMilli() >= r.resume.Load() {
		sctx, cancel := context.WithTimeout(ctx, storeTimeout)
		storeErr = r.write(sctx, e)
		cancel()
		if storeErr == nil {
			return nil
		}
		if store.IsUnavailable(storeErr) {
			r.storeFailed()
		}
		r.warn.Warn(ctx, "store", "a settlement could not be written to the store; it goes to the outbox", storeErr)
	}
	octx, cancel := context.WithTimeout(ctx, outboxTimeout)
	defer cancel()
	if err := r.outbox.put(octx, e); err != nil {
		return errors.Join(storeErr, err)
	}
	return nil
}

func (r *Recorder) storeFailed() { r.resume.Store(time.Now().Add(storePause).UnixMilli()) }

// Status reads the status of a key in SQL and, if outbox is set, in a settlement of the outbox.
func (r *Recorder) Status(ctx context.Context, key string, outbox bool) (store.TaskStatus, error) {
	found, err := r.store.TaskStatus(ctx, key)
	if err != nil || found.Finished || !outbox {
		return found, err
	}
	s, waits, err := r.outbox.verdict(ctx, key, found.Generation)
	if err != nil || !waits {
		return found, err
	}
	return store.TaskStatus{
		Known: true, Generation: s.Generation, Finished: s.Finished, Verdict: s.Verdict, Outcome: s.Outcome,
		Reason: s.Reason, Final: s.Final, Result: s.Result, Path: s.Path, Queue: s.Queue, FinishedAt: s.At,
	}, nil
}

// Waiting returns the number of settlements in the outbox.
func (r *Recorder) Waiting(ctx context.Context) (int64, error) { return r.outbox.length(ctx) }

// write stores entries in SQL. It writes the ledger first, because a send without a report blocks its key, while
// an unsettled task only runs again.
func (r *Recorder) write(ctx context.Context, entries ...Entry) error {
	var settlements []store.Settlement
	for _, e := range entries {
		settlements = append(settlements, e.Settlement)
		var err error
		switch {
		case e.Latch != nil:
			_, err = r.ledger.Conclude(ctx, e.Settlement.Call.AttemptID, *e.Latch)
		case e.Verified != nil:
			settlements, err = r.verified(ctx, *e.Verified, settlements)
		}
		switch {
		case errors.Is(err, idempotency.ErrUnknownAttempt), errors.Is(err, idempotency.ErrInvalid):
			// A ledger that was restored from a backup does not know the send. The settlement is stored nevertheless.
			r.log.Error("the upload ledger refuses the report of an attempt; see inspect uploads", "task_id", e.Settlement.Key, "error", err)
		case err != nil:
			return err
		}
	}
	if len(settlements) == 0 {
		return nil
	}
	return r.store.Settle(ctx, settlements...)
}

// verified reports to the ledger what the recognition of an uncertain upload found. If that settles the upload,
// the upload's own settlement is added.
func (r *Recorder) verified(ctx context.Context, v idempotency.Verification, settlements []store.Settlement) ([]store.Settlement, error) {
	st, err := r.ledger.Verified(ctx, v)
	if err != nil {
		return settlements, err
	}
	r.log.Info("recognition of an uncertain upload", "task_id", v.Key, "settled", st.State == idempotency.Settled)
	if st.State != idempotency.Settled {
		return settlements, nil
	}
	task, err := r.store.TaskStatus(ctx, v.Key)
	if err != nil {
		return settlements, err
	}
	return append(settlements, Arrived(st.Send, task.Generation, v.At)), nil
}

// Arrived returns the settlement of a held upload whose send the ledger has as settled: by a verification, an
// operator or a late report of its attempt. It replaces the verdict hold of the same attempt. generation is the
// task's, not the send's.
func Arrived(send idempotency.Send, generation int64, at time.Time) store.Settlement {
	return store.Settlement{
		Key: send.Key, Generation: generation, Path: tasks.Upload, AttemptID: send.AttemptID, Finished: true,
		Verdict: tasks.Done, Outcome: tasks.Uploaded, Reason: retrypolicy.Reason(tasks.Uploaded, send.Reason), Result: []byte("null"), At: at,
	}
}
