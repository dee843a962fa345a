package upkeep

import (
	"context"
	"log/slog"
	"time"

	"reprise/idempotency"
	"reprise/internal/queue"
	"reprise/worker/warn"
)

// overdueInterval is how often the ledger is searched for overdue sends.
const overdueInterval = 15 * time.Second

// OverdueSends ends uploads that were sent, whose attempt reported nothing in time, and for which no delivery
// is due. Redis may have lost the outbox with the report, and a late ack of the first delivery may have
// completed the task when it was queued again. The task is put back into its queue, and its next delivery makes
// the send uncertain.
type OverdueSends struct {
	Ledger *idempotency.Ledger
	Queues *queue.Client
	Store  Store
	Leader *Leader
	Log    *slog.Logger
	Warn   *warn.Limiter
}

// Run searches while this worker leads, until ctx ends.
func (o OverdueSends) Run(ctx context.Context) {
	o.Leader.every(ctx, overdueInterval, func(ctx context.Context) {
		sent, err := o.Ledger.List(ctx, idempotency.Filter{States: []idempotency.State{idempotency.Sent}})
		o.Warn.Warn(ctx, "overdue", "sends without a report cannot be listed", err)
		for _, e := range sent {
			o.Warn.Warn(ctx, "overdue", "an overdue send could not be ended", o.end(ctx, e.Key, time.Now()))
		}
	})
}

// end requeues the task of a send that is overdue at now. Without a task row nothing can be queued, and the
// ledger alone gets the state uncertain.
func (o OverdueSends) end(ctx context.Context, key string, now time.Time) error {
	st, err := o.Ledger.Status(ctx, key)
	if err != nil || st.State != idempotency.Sent || now.Before(st.Until) {
		return err
	}
	task, err := o.Store.TaskStatus(ctx, key)
	switch {
	case err != nil || task.Finished:
		return err
	case !task.Known:
		_, err = o.Ledger.Expire(ctx, key, now)
		return err
	}
	found, err := requeue(ctx, o.Queues, o.Store, task.Queue, key)
	if err == nil && (found == queue.NotQueued || found.Ended()) {
		o.Log.Warn("an upload was sent and has no result; its task is queued again, to hold it for an operator", "task_id", key)
	}
	return err
}
