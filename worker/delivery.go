package worker

import (
	"context"
	"time"

	"github.com/hibiken/asynq"

	"reprise/admission"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// delivery is one run of the handler: what asynq handed over and what became
// of it so far. It lives on one goroutine.
type delivery struct {
	id, queue string
	group     string
	typ       string
	raw       []byte
	payload   tasks.Payload

	retried  int       // asynq's counter, shown in logs only
	deadline time.Time // asynq's; the handler always returns before it
	maxRetry int       // asynq's limit

	standing store.TaskStatus
	permit   *admission.Permit
	// latchTried: the upload's attempt asked the ledger for its latch
	latchTried bool
	excluded   []string              // sources that refused the account in this delivery
	refusal    *retrypolicy.Decision // the last such refusal
	received   time.Time

	waitCause string // what it waited for last, and since when (waits.go)
	waitSince time.Time
}

func (w *Worker) newDelivery(ctx context.Context, t *asynq.Task) *delivery {
	d := &delivery{typ: t.Type(), raw: t.Payload(), received: w.now()}
	d.id, _ = asynq.GetTaskID(ctx)
	d.queue, _ = asynq.GetQueueName(ctx)
	d.retried, _ = asynq.GetRetryCount(ctx)
	d.deadline, _ = ctx.Deadline()
	d.maxRetry, _ = asynq.GetMaxRetry(ctx)
	if path, group, err := tasks.SplitQueue(d.queue); err == nil {
		d.group, d.payload.Path = group, path
	}
	return d
}

// record is the state of the task's budgets before this attempt. Without a
// permit (nothing admitted yet) it is empty.
func (d *delivery) record() tasks.AttemptRecord {
	if d.permit == nil {
		return tasks.AttemptRecord{Generation: d.standing.Generation}
	}
	return d.permit.Record
}

// exclude takes the permit's source out of this delivery after it refused the
// account; the refusal is kept in case no other source can take over.
func (d *delivery) exclude(decision retrypolicy.Decision) {
	d.excluded = append(d.excluded, d.permit.Source)
	d.refusal = &decision
	d.permit = nil
}
