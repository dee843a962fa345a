package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/redis/go-redis/v9"

	"reprise/internal/queue"
	"reprise/internal/redisconn"
	"reprise/retrypolicy"
	"reprise/worker/record"
	"reprise/worker/upkeep"
	"reprise/worker/warn"
)

// Records is the SQL store as a worker uses it: *store.Store, or a replacement without SQL in benchmarks.
type Records interface {
	upkeep.Store
	// Ping returns an error if nothing can be written.
	Ping(ctx context.Context) error
}

// Worker runs tasks. Create it with New, call Run once, then Close. It has the parts of the delivery pipeline and
// starts the services beside it.
type Worker struct {
	opts    Options
	log     *slog.Logger
	warn    *warn.Limiter
	policy  retrypolicy.Policy
	records Records

	conn     *redisconn.Client // asynq's, the outbox's and upkeep's
	queues   *queue.Client
	leader   *upkeep.Leader
	recorder *record.Recorder

	settler  *settler
	admitter *admitter
	uploads  *uploads
	caller   *caller
	servers  *servers
	waits    *waits
	metrics  *metrics

	stopping context.Context //nolint:containedctx // done: no new tasks, waiting deliveries return
	stop     context.CancelFunc
	stopped  context.Context //nolint:containedctx // done: running calls and unsaved settlements are abandoned
	abandon  context.CancelFunc
	closers  []closer
	ready    chan struct{} // closed: serving
	addr     string        // of the admin listener; set before ready
}

// closer is a named step of Close.
type closer struct {
	name string
	run  func() error
}

func (w *Worker) onClose(name string, run func() error) {
	w.closers = append(w.closers, closer{name: name, run: run})
}

// Close releases what New opened, last in, first out. A second call does nothing.
func (w *Worker) Close() error {
	w.stop()
	w.abandon()
	var errs []error
	for _, c := range slices.Backward(w.closers) {
		if err := c.run(); err != nil && !errors.Is(err, redis.ErrClosed) {
			errs = append(errs, fmt.Errorf("close %s: %w", c.name, err))
		}
	}
	w.closers = nil
	return errors.Join(errs...)
}

// Ready returns a channel that is closed when Run has passed its checks and takes tasks.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// AdminAddr returns the address of the admin listener, once Ready is closed; "" without one.
func (w *Worker) AdminAddr() string { return w.addr }
