package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"reprise/idempotency"
	"reprise/store/identity"
	"reprise/tasks"
	"reprise/worker/upkeep"
)

// Run works until ctx ends, then stops in order: nothing new is taken, waiting
// deliveries return at once, running calls finish within the drain, and the
// outbox is drained once more. It returns nil after a clean stop.
//
// Close, or the end of the process, abandons running calls: they may still be
// billed, and are charged already.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.checkStart(ctx); err != nil {
		return err
	}
	w.admitter.seeder.ExpectLimits(ctx)
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	defer group.Wait()
	defer stopBackground()
	admin, err := w.listen(background)
	if err != nil {
		return err
	}
	defer admin()
	for _, run := range w.services(refuse) {
		group.Go(func() { run(background) })
	}
	if err := w.servers.serve(nil); err != nil {
		return err
	}
	close(w.ready)
	w.log.Info("ready", "queues", w.servers.queues(), "admin", w.addr, "version", w.opts.Version)
	<-ctx.Done()
	w.log.Info("stopping: running calls finish, nothing new is taken", "drain", w.opts.drain())
	w.servers.stop(w.stop)
	w.warn.Warn(background, "admission", "reports to admission were cut short", w.admitter.gates.Close())
	last, cancel := context.WithTimeout(background, lastDrain)
	defer cancel()
	if err := w.recorder.Drain(last); err != nil {
		w.log.Warn("settlements are left in the outbox for the next worker", "error", err)
	}
	w.log.Info("stopped")
	if other, ok := errors.AsType[*identity.MismatchError](context.Cause(ctx)); ok {
		return other
	}
	return nil
}

// lastDrain bounds the drain of the outbox at a stop.
const lastDrain = 5 * time.Second

// services run beside the deliveries until their context ends.
// refuse stops the worker with an error.
func (w *Worker) services(refuse func(error)) []func(context.Context) {
	leader, queues := w.leader, w.queues
	replayer := &upkeep.Replayer{
		Gates: w.admitter.gates, Queues: queues, Redis: w.conn, Store: w.records, Leader: leader, Log: w.log, Warn: w.warn,
	}
	gauges := newQueueGauges(w.metrics, queues, w.recorder)
	out := []func(context.Context){
		w.renewPermits, upkeep.OutboxDrain{Recorder: w.recorder, Warn: w.warn}.Run, leader.Run, w.admitter.pauses.Run, replayer.Run,
		w.admitter.cordon.run, w.servers.watch, w.waits.run, gauges.run,
	}
	if w.opts.Ledger != nil {
		overdue := upkeep.OverdueSends{Ledger: w.opts.Ledger, Queues: queues, Store: w.records, Leader: leader, Log: w.log, Warn: w.warn}
		out = append(out, overdue.Run)
	}
	if w.opts.Ledger != nil && w.opts.Verify == idempotency.VerifyRecognize {
		verifier := &upkeep.Verifier{Ledger: w.opts.Ledger, Queues: queues, Store: w.records, Delay: w.opts.VerifyDelay, Log: w.log, Warn: w.warn}
		out = append(out, verifier.Run)
	}
	if w.opts.Marks != nil {
		out = append(out, upkeep.StoreWatch{Redis: w.conn, Marks: w.opts.Marks, Refuse: refuse, Warn: w.warn}.Run)
	}
	return out
}

func (w *Worker) renewPermits(ctx context.Context) {
	w.warn.Warn(ctx, "admission", "permits are not renewed", w.admitter.gates.Run(ctx))
}

// deliver is asynq's handler: the one place where a verdict becomes asynq's nil,
// retry or archive.
func (w *Worker) deliver(ctx context.Context, t *asynq.Task) error {
	d := newDelivery(ctx, t)
	defer w.metrics.working(d.payload.Path)()
	a := w.handle(ctx, d)
	w.metrics.verdict(d.payload.Path, a.verdict)
	if a.verdict != tasks.Done { // done has the line of its attempt
		w.log.Debug("answer", "task_id", d.id, "queue", d.queue, "outcome", string(a.outcome), "verdict", string(a.verdict),
			"delay", a.delay, "reason", a.reason)
	}
	return a.asError()
}

// onError receives every error that asynq is about to act on. Answers are logged
// where they arise; the others are asynq's own: its timeout, a lost lease.
func (w *Worker) onError(ctx context.Context, _ *asynq.Task, err error) {
	if _, ok := errors.AsType[*answer](err); ok {
		return
	}
	id, _ := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	w.log.Warn("asynq ended a delivery by itself; the attempt stays charged", "task_id", id, "queue", queue, "error", err)
	if path, _, perr := tasks.SplitQueue(queue); perr == nil {
		w.metrics.attempt(path, tasks.Crash)
	}
}
