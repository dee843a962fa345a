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

// Run runs tasks until ctx ends, then stops in order: no new tasks are taken, waiting deliveries return at once,
// running calls have the drain time to finish, and the outbox is drained once more. It returns an error only if
// the worker cannot start, or if it stopped because its store does not belong to Redis.
//
// A call that is still running when its drain time is over, or at Close, may be billed. It is charged already.
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
	w.log.Info("stopping: no new tasks are taken, running calls finish", "drain", w.opts.drain())
	w.servers.stop(w.stop)
	w.warn.Warn(background, "admission", "some reports to admission were not sent", w.admitter.gates.Close())
	last, cancel := context.WithTimeout(background, lastDrain)
	defer cancel()
	if err := w.recorder.Drain(last); err != nil {
		w.log.Warn("settlements stay in the outbox until a worker writes them to the store", "error", err)
	}
	w.log.Info("stopped")
	if other, ok := errors.AsType[*identity.MismatchError](context.Cause(ctx)); ok {
		return other
	}
	return nil
}

// lastDrain bounds the drain of the outbox when the worker stops.
const lastDrain = 5 * time.Second

// services returns what runs beside the deliveries until its context ends. refuse stops the worker with an error.
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

// deliver is asynq's handler.
func (w *Worker) deliver(ctx context.Context, t *asynq.Task) error {
	d := newDelivery(ctx, t)
	defer w.metrics.working(d.payload.Path)()
	a := w.handle(ctx, d)
	w.metrics.verdicts.WithLabelValues(string(d.payload.Path), string(a.verdict)).Inc()
	if a.verdict != tasks.Done { // the line of the attempt shows that it is done
		w.log.Debug("answer", "task_id", d.id, "queue", d.queue, "outcome", string(a.outcome), "verdict", string(a.verdict),
			"delay", a.delay, "reason", a.reason)
	}
	return a.asError()
}

// onError receives every error that ends a delivery. The answers of handle are logged where they arise; all
// others are asynq's own, such as its timeout or a lost lease.
func (w *Worker) onError(ctx context.Context, _ *asynq.Task, err error) {
	if _, ok := errors.AsType[*answer](err); ok {
		return
	}
	id, _ := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	w.log.Warn("asynq ended a delivery itself; its attempt stays charged", "task_id", id, "queue", queue, "error", err)
	if path, _, perr := tasks.SplitQueue(queue); perr == nil {
		w.metrics.attempt(path, tasks.Crash)
	}
}
