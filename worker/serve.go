package worker

import (
	"context"
	"sync"

	"github.com/hibiken/asynq"

	"reprise/tasks"
)

// Run works until ctx ends, then stops in order: nothing new is taken, waiting
// deliveries return at once, running calls finish within the drain, and the
// outbox is drained once more. It returns nil after a clean stop.
//
// Cancel hard (Close's halt, or the process's end) to abandon running calls:
// they may still be billed, and are charged already.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.check(ctx); err != nil {
		return err
	}
	w.recall(ctx)
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	defer group.Wait()
	defer stopBackground()
	admin, err := w.listen(background)
	if err != nil {
		return err
	}
	defer admin()
	servers := w.servers
	for _, run := range []func(context.Context){
		w.gates.run, w.outbox.run, w.waits.run, w.metrics.run(w), w.paths.run, w.verifyUploads, servers.watch,
	} {
		group.Go(func() { run(background) })
	}
	if err := servers.reshape(nil); err != nil {
		return err
	}
	close(w.ready)
	w.log.Info("ready", "queues", servers.queues(), "admin", w.addr, "version", w.opts.Version)
	<-ctx.Done()
	w.log.Info("stopping: running calls finish, nothing new is taken", "drain", w.opts.drain())
	servers.stop()
	w.gates.flush()
	last, cancel := context.WithTimeout(background, outboxTimeout)
	defer cancel()
	if err := w.outbox.drain(last); err != nil {
		w.log.Warn("settlements are left in the outbox for the next worker", "error", err)
	}
	w.log.Info("stopped")
	return nil
}

// deliver counts the slot as busy around a delivery.
func (w *Worker) deliver(ctx context.Context, t *asynq.Task) error {
	queue, _ := asynq.GetQueueName(ctx)
	if path, _, err := tasks.SplitQueue(queue); err == nil {
		defer w.metrics.working(path)()
	}
	return w.handle(ctx, t)
}

// heard sees every error asynq is about to act on. Our own answers are logged
// where they arise; what is left is asynq's: its timeout, a lost lease.
func (w *Worker) heard(ctx context.Context, t *asynq.Task, err error) {
	if isAnswer(err) {
		return
	}
	id, _ := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	w.log.Warn("asynq ended a delivery by itself; the attempt stays charged", "task_id", id, "queue", queue, "error", err)
	if path, _, perr := tasks.SplitQueue(queue); perr == nil {
		w.metrics.attempt(path, tasks.Crash)
	}
}
