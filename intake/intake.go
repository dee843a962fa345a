package intake

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/queue"
	"reprise/store"
	"reprise/tasks"
)

// Options are the dependencies and settings of an Intake.
type Options struct {
	// Redis is the client of the queue (redisconn.Queue); the caller closes it. nil = plans only, which then do not
	// know what is queued already.
	Redis redis.UniversalClient
	// Store is required; the caller closes it.
	Store *store.Store
	// Ledger is the upload ledger in the database of Store; nil = no uploads.
	Ledger *idempotency.Ledger
	// Stdin is read for the argument "-"; nil = that argument is refused.
	Stdin io.Reader
	// Parallel is how many files are read at once; 0 = twice the CPUs, at least 4.
	Parallel int
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Intake plans and enqueues inputs. It is safe for concurrent use with different plans.
type Intake struct {
	opts   Options
	queues *queue.Client // nil without Redis
}

// New returns an Intake. It opens nothing, so there is nothing to close.
func New(opts Options) (*Intake, error) {
	var errs []error
	if opts.Store == nil {
		errs = append(errs, errors.New("intake: Store is missing"))
	}
	if opts.Parallel < 0 {
		errs = append(errs, errors.New("intake: Parallel is negative"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if opts.Parallel == 0 {
		opts.Parallel = max(4, 2*runtime.GOMAXPROCS(0))
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	in := &Intake{opts: opts}
	if opts.Redis != nil {
		in.queues = queue.New(opts.Redis, admission.DefaultConfig().Prefix)
	}
	return in, nil
}

// Request says how the inputs are processed.
type Request struct {
	Path   tasks.Path
	Params tasks.Params
	// MaxUnits is the most that one enterprise task may be billed, in units; 0 = what its measured length costs.
	// Inputs without a measurable length need it.
	MaxUnits int64
	// Force pays again for settled tasks, also for those that failed permanently.
	Force bool

	// Group is whose queue and budget the tasks go to; "" = none. A task that waits in the queue of another group
	// is queued again only if this group has the higher weight.
	Group string

	// NextID assigns an audio_id to each upload that has none, and the same one to the same content. Params.AudioID
	// is for a single input. Params.Source is for all inputs that do not name their own.
	NextID bool
	// Replace takes slots from other content, which AudD then no longer has.
	Replace bool
	// By is who asks, for the audit trail. Replace and Force of uploads need it.
	By string
}

// Progress reports how far Plan or Enqueue are.
type Progress struct {
	Done, Total int
	Bytes       int64 // read so far (Plan)
}

// Workers counts the worker processes that serve a path on the queue's Redis; 0 without Redis. A worker that died
// counts for up to 10 s.
func (in *Intake) Workers(ctx context.Context, path tasks.Path) (int, error) {
	if in.queues == nil {
		return 0, nil
	}
	workers, err := in.queues.Workers(ctx)
	serving := slices.DeleteFunc(workers, func(w queue.Worker) bool {
		return !slices.ContainsFunc(w.Queues, func(name string) bool { p, _, err := tasks.SplitQueue(name); return err == nil && p == path })
	})
	return len(serving), err
}
