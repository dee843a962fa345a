package worker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/audd"
	"reprise/internal/redisconn"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// Records is where verdicts and calls are kept: *store.Store, or a stand-in in
// benchmarks that leave SQL out.
type Records interface {
	// Settle stores settlements, idempotently.
	Settle(ctx context.Context, s ...store.Settlement) error
	// TaskStatus tells where a key stands.
	TaskStatus(ctx context.Context, key string) (store.TaskStatus, error)
	// Tasks, Reopen and Payload serve replays.
	Tasks(ctx context.Context, f store.TaskFilter) ([]store.TaskRow, error)
	Reopen(ctx context.Context, key string, from int64) (int64, error)
	Payload(ctx context.Context, key string) ([]byte, error)
	// Spent sums the units of calls, to seed a lost budget.
	Spent(ctx context.Context, f store.SpentFilter) (int64, error)
	// Ping fails when nothing can be written.
	Ping(ctx context.Context) error
}

// Worker runs tasks. Create it with New, run it with Run once, then Close it.
type Worker struct {
	opts    Options
	log     *slog.Logger
	records Records
	policy  retrypolicy.Policy
	clients map[string]*audd.Client
	queue   *redisconn.Client // asynq's and the outbox's
	gates   *gates
	uploads *uploads
	outbox  *outbox
	paths   *paths
	servers *fleet
	sitout  *sitout
	replays *replays
	metrics *metrics
	waits   *waits
	warn    *warner
	shutLog *shutLog
	unsaved atomic.Int64 // settlements that found no place yet: no call is made meanwhile

	open    context.Context //nolint:containedctx // done: take nothing new, waiting deliveries return
	shut    context.CancelFunc
	halted  context.Context //nolint:containedctx // done: give up what cannot be saved
	halt    context.CancelFunc
	closers []closer
	ready   chan struct{} // closed: serving
	addr    string        // of the admin listener; set before ready
}

// closer is a named step of Close; steps run last in, first out.
type closer struct {
	name string
	run  func() error
}

// New checks the options, connects, and builds the worker. Nothing is taken
// from the queue before Run. On error everything opened is closed again.
func New(ctx context.Context, opts Options, records Records) (*Worker, error) {
	opts.Admission.Sources = admissionSources(opts)
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("check the settings: %w", err)
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	w := &Worker{opts: opts, log: opts.Log, records: records, policy: opts.Policy, ready: make(chan struct{})}
	w.halted, w.halt = context.WithCancel(context.WithoutCancel(ctx))
	w.open, w.shut = context.WithCancel(context.WithoutCancel(ctx))
	w.warn = newWarner(w.log)
	w.shutLog = newShutLog(w.log)
	w.metrics = newMetrics(opts)
	w.waits = newWaits(w.log)
	if err := w.connect(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Worker) connect() error {
	queue, err := redisconn.Queue(w.opts.RedisURL, w.opts.Slots.total())
	if err != nil {
		return fmt.Errorf("connect to Redis: %w", err)
	}
	w.queue = queue
	w.onClose("redis", queue.Close)
	gateway, err := redisconn.Admission(w.opts.RedisURL)
	if err != nil {
		return fmt.Errorf("connect to Redis for admission: %w", err)
	}
	w.onClose("redis for admission", gateway.Close)
	inner, err := admission.New(gateway, w.opts.Admission)
	if err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}
	w.gates = &gates{Gates: inner, warn: w.warn}
	w.uploads = &uploads{ledger: w.opts.Ledger, rdb: queue, verify: w.opts.Verify}
	w.outbox = &outbox{rdb: queue, keys: outboxUnder(w.opts.Admission.Prefix), records: w.records, uploads: w.uploads, warn: w.warn}
	w.paths = newPaths(w)
	w.servers = &fleet{w: w}
	w.sitout = &sitout{w: w, out: map[string]bool{}}
	w.replays = &replays{w: w, rdb: queue, inspector: w.paths.inspector}
	w.clients = map[string]*audd.Client{}
	for _, s := range w.opts.Sources {
		client, err := audd.New(w.clientConfig(s))
		if err != nil {
			return fmt.Errorf("set up source %s: %w", s.Name, err)
		}
		w.clients[s.Name] = client
	}
	return nil
}

func (w *Worker) clientConfig(s Source) audd.Config {
	c := audd.DefaultConfig()
	c.Token, c.Timeouts, c.HTTPClient = s.Token, w.opts.Timeouts, w.opts.HTTPClient
	c.UserAgent = "reprise/" + w.opts.Version
	if s.BaseURL != "" {
		c.BaseURL = s.BaseURL
	}
	if s.EnterpriseURL != "" {
		c.EnterpriseURL = s.EnterpriseURL
	}
	return c
}

func admissionSources(opts Options) []admission.SourceConfig {
	var out []admission.SourceConfig
	for _, s := range opts.Sources {
		if s.Token != nil {
			out = append(out, admission.SourceConfig{Name: s.Name, Fingerprint: fingerprint(s.Token())})
		}
	}
	return out
}

// fingerprint tells two tokens apart without giving either away: admission
// keeps it beside a halt, so that another token lifts it.
func fingerprint(token string) string {
	sum := sha256.Sum256([]byte("reprise token fingerprint\n" + token))
	return hex.EncodeToString(sum[:6])
}

func (w *Worker) onClose(name string, run func() error) {
	w.closers = append(w.closers, closer{name: name, run: run})
}

// Close releases what New opened, last in, first out. It may be called twice.
func (w *Worker) Close() error {
	w.shut()
	w.halt()
	var errs []error
	for _, c := range slices.Backward(w.closers) {
		if err := c.run(); err != nil && !errors.Is(err, redis.ErrClosed) {
			errs = append(errs, fmt.Errorf("close %s: %w", c.name, err))
		}
	}
	w.closers = nil
	return errors.Join(errs...)
}

// Ready is closed when Run has passed its checks and takes tasks.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// AdminAddr is the address the admin listener is bound to, once Ready.
func (w *Worker) AdminAddr() string { return w.addr }

func (w *Worker) now() time.Time { return time.Now() }

// random is the jitter's source: not secret, only spread.
func (w *Worker) random() float64 { return mathrand.Float64() }

// newAttemptID is 128 random bits in hex.
func newAttemptID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

// usable reports the paths this worker has slots for.
func (w *Worker) usable() []tasks.Path {
	var out []tasks.Path
	for _, p := range tasks.Paths {
		if w.opts.Slots.of(p) > 0 {
			out = append(out, p)
		}
	}
	return out
}
