package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"reprise/tasks"
)

// forwardEvery is how often asynq moves due retries to pending. asynq's 5 s
// would release every due task in one burst and make short delays useless.
const forwardEvery = time.Second

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
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	defer group.Wait()
	defer stopBackground()
	admin, err := w.listen(background)
	if err != nil {
		return err
	}
	defer admin()
	for _, run := range []func(context.Context){w.gates.run, w.outbox.run, w.rescues.run, w.waits.run, w.metrics.run(w)} {
		group.Go(func() { run(background) })
	}
	servers, err := w.start()
	if err != nil {
		return err
	}
	close(w.ready)
	w.log.Info("ready", "queues", w.usable(), "admin", w.addr, "version", w.opts.Version)
	<-ctx.Done()
	w.log.Info("stopping: running calls finish, nothing new is taken", "drain", w.opts.drain())
	w.stop(servers)
	w.log.Info("stopped")
	return nil
}

// start starts one asynq server per path: a bulkhead, so that slow enterprise
// calls cannot take a clip's slot.
func (w *Worker) start() ([]*asynq.Server, error) {
	var servers []*asynq.Server
	for _, path := range w.usable() {
		srv := asynq.NewServerFromRedisClient(w.queue, asynq.Config{
			Concurrency:              w.opts.Slots.of(path),
			Queues:                   map[string]int{path.Queue(""): 1},
			TaskCheckInterval:        w.opts.TaskCheckInterval,
			DelayedTaskCheckInterval: forwardEvery,
			IsFailure:                isFailure,
			RetryDelayFunc:           retryDelay,
			ErrorHandler:             asynq.ErrorHandlerFunc(w.heard),
			ShutdownTimeout:          w.opts.drain() + settleMargin,
			Logger:                   asynqLog{w.log.With("component", "asynq", "path", string(path))},
			LogLevel:                 asynq.WarnLevel,
		})
		if err := srv.Start(asynq.HandlerFunc(w.deliver)); err != nil {
			w.stop(servers)
			return nil, fmt.Errorf("start the %s server: %w", path, err)
		}
		servers = append(servers, srv)
	}
	return servers, nil
}

// deliver counts the slot as busy around a delivery.
func (w *Worker) deliver(ctx context.Context, t *asynq.Task) error {
	queue, _ := asynq.GetQueueName(ctx)
	if path, _, err := tasks.SplitQueue(queue); err == nil {
		defer w.metrics.working(path)()
	}
	return w.handle(ctx, t)
}

// stop ends the servers together: the drain is as long as the longest of them.
func (w *Worker) stop(servers []*asynq.Server) {
	for _, s := range servers {
		s.Stop()
	}
	close(w.stopping)
	w.queue.Stopping()
	var group sync.WaitGroup
	for _, s := range servers {
		group.Go(s.Shutdown)
	}
	group.Wait()
	w.gates.flush()
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
