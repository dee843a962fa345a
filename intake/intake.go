package intake

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

// MaxRecognizeBytes is the largest file AudD's standard endpoint takes: 10 MiB.
const MaxRecognizeBytes = 10 << 20

// urlReuse is how long the result for a URL answers for it again: what a URL
// serves may change.
const urlReuse = 24 * time.Hour

// Options are what an Intake works with.
type Options struct {
	// Redis is the queue's client (redisconn.Queue). It stays the caller's to
	// close. nil = plans only, which then cannot tell what is queued already.
	Redis redis.UniversalClient
	// Store is the caller's to close, too.
	Store *store.Store
	// Ledger is the upload ledger in the store's database; nil = no uploads.
	Ledger *idempotency.Ledger
	// Stdin is read for the argument "-"; nil = that argument is refused.
	Stdin io.Reader
	// Parallel is how many files are read at once; 0 = twice the CPUs, at least 4.
	Parallel int
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Intake enqueues. Its methods may be called concurrently with different plans.
type Intake struct {
	opts      Options
	client    *asynq.Client
	inspector *asynq.Inspector
}

// New makes an Intake. It opens nothing, so there is nothing to close.
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
		// asynq publishes a queue's name with a client's first task only. A
		// process that lives long beside a person who deletes queues should
		// make a new Intake now and then.
		in.client = asynq.NewClientFromRedisClient(opts.Redis)
		in.inspector = asynq.NewInspectorFromRedisClient(opts.Redis)
	}
	return in, nil
}

// Request says what is to be done with the inputs.
type Request struct {
	Path   tasks.Path
	Params tasks.Params
	// MaxUnits is the most one task may be billed (enterprise); 0 = what its
	// measured length says. Inputs without a measurable length need it.
	MaxUnits int64
	// Force pays again for what is settled, tombstones included.
	Force bool

	// Group is whose queue and budget the tasks go to; "" = none. What waits in
	// another group's queue already is queued again only for a heavier group.
	Group string

	// NextID allots an audio_id to each upload that has none. The same content
	// gets the same one again. Params.AudioID is for a single input; the source
	// of Params for all that do not name their own.
	NextID bool
	// Replace takes slots from other content: what AudD holds there is lost.
	Replace bool
	// By is who asks, for the audit trail; Replace and Force of uploads need it.
	By string
}

// Progress tells how far Plan or Enqueue are.
type Progress struct {
	Done, Total int
	Bytes       int64 // read so far (Plan)
}

// Workers counts the workers on the queue's Redis that serve a path. Their
// heartbeats lag up to 5 s.
func (in *Intake) Workers(path tasks.Path) (int, error) {
	servers, err := in.inspector.Servers()
	if err != nil {
		return 0, fmt.Errorf("count the workers: %w", err)
	}
	n := 0
	for _, s := range servers {
		for queue := range s.Queues {
			if p, _, err := tasks.SplitQueue(queue); err == nil && p == path {
				n++
				break
			}
		}
	}
	return n, nil
}
