package intake

import (
	"cmp"
	"context"
	"errors"
	"io"
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
	// Redis is the client of the queue (redisconn.Queue); the caller closes it. nil = only Plan works, and it does not
	// see which tasks are queued.
	Redis redis.UniversalClient
	// Store is required; the caller closes it.
	Store *store.Store
	// Ledger is the upload ledger in the database of Store; nil = no uploads.
	Ledger *idempotency.Ledger
	// Stdin is read for the argument "-"; nil = the argument is refused.
	Stdin io.Reader
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
	if opts.Store == nil {
		return nil, errors.New("intake: Options.Store is missing")
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

// Request describes how the inputs are processed.
type Request struct {
	Path   tasks.Path
	Params tasks.Params
	// MaxUnits is the most that one enterprise task may be billed, in units; 0 = what its measured length costs.
	// An input without a measurable length needs it.
	MaxUnits int64
	// Force calls AudD again for settled tasks, which is billed again. Tasks that failed permanently are included.
	Force bool

	// Group is the group whose queue and budget the tasks use; "" = none. A task that waits in the queue of another
	// group is queued again only if this group has the higher weight.
	Group string

	// NextID assigns an audio_id to each upload that has none, and the same one to the same content. Params.AudioID
	// is for a single input. Params.Source is for all inputs that do not name their own.
	NextID bool
	// Replace overwrites slots that hold other content, which AudD then no longer has.
	Replace bool
	// By is the name of the user, for the audit trail. Uploads with Replace or Force need it.
	By string
}

// Validate returns an error for parameters that are wrong for every input.
func (r Request) Validate() error {
	params := r.Params
	var errs []error
	if r.Path == tasks.Upload {
		if (r.Force || r.Replace) && r.By == "" {
			errs = append(errs, errors.New("uploads with Replace or Force need By, the name of the user"))
		}
		if r.NextID && params.AudioID != nil {
			errs = append(errs, errors.New("NextID and an audio_id cannot be combined"))
		}
		params.AudioID = cmp.Or(params.AudioID, new(int64)) // each input may have its own audio_id and source
		params.Source = cmp.Or(params.Source, "any")
	}
	probe := tasks.Input{Kind: tasks.URLInput, URL: "http://localhost/"}
	_, err := tasks.New(r.Path, probe, params, r.MaxUnits)
	return errors.Join(append(errs, tasks.ValidateGroup(r.Group), err)...)
}

// Progress is the progress of Plan or Enqueue.
type Progress struct {
	Done, Total int
	Bytes       int64 // read so far (Plan)
}

// Workers returns the number of worker processes that serve a path on the queue's Redis; 0 without Redis. A worker that
// died counts for up to 10 s.
func (in *Intake) Workers(ctx context.Context, path tasks.Path) (n int, err error) {
	if in.queues == nil {
		return 0, nil
	}
	workers, err := in.queues.Workers(ctx)
	for _, w := range workers {
		if slices.ContainsFunc(w.Queues, path.Owns) {
			n++
		}
	}
	return n, err
}
