package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"

	"reprise/admission"
	"reprise/audd"
	"reprise/internal/queue"
	"reprise/internal/redisconn"
	"reprise/tasks"
	"reprise/worker/record"
	"reprise/worker/upkeep"
	"reprise/worker/warn"
)

// New checks the options, connects and builds the worker. Run starts to take tasks. After an error everything is
// closed again.
func New(ctx context.Context, opts Options, records Records) (*Worker, error) {
	opts.Admission.Sources = admissionSources(opts)
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("check the settings: %w", err)
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	w := &Worker{opts: opts, log: opts.Log, warn: warn.NewLimiter(opts.Log), records: records, policy: opts.Policy, ready: make(chan struct{})}
	w.stopped, w.abandon = context.WithCancel(context.WithoutCancel(ctx))
	w.stopping, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.metrics = newMetrics(opts)
	w.waits = newWaits(w.log)
	if err := w.connect(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Worker) connect() error {
	conn, err := redisconn.Queue(w.opts.RedisURL, w.opts.Slots.total())
	if err != nil {
		return fmt.Errorf("connect to Redis: %w", err)
	}
	w.conn = conn
	w.onClose("redis", conn.Close)
	gateway, err := redisconn.Admission(w.opts.RedisURL)
	if err != nil {
		return fmt.Errorf("connect to Redis for admission: %w", err)
	}
	w.onClose("redis for admission", gateway.Close)
	gates, err := admission.New(gateway, w.opts.Admission)
	if err != nil {
		return fmt.Errorf("set up admission: %w", err)
	}
	clients := map[string]*audd.Client{}
	for _, s := range w.opts.Sources {
		if clients[s.Name], err = audd.New(w.clientConfig(s)); err != nil {
			return fmt.Errorf("set up source %s: %w", s.Name, err)
		}
	}
	w.assemble(gates, clients)
	return nil
}

// assemble builds the parts of the pipeline.
func (w *Worker) assemble(gates *admission.Gates, clients map[string]*audd.Client) {
	o, conn := w.opts, w.conn
	w.queues = queue.New(conn, o.Admission.Prefix)
	w.leader = upkeep.NewLeader(conn, newAttemptID())
	w.recorder = record.New(w.records, o.Ledger, conn, o.Admission.Prefix, w.log)
	slot := &slot{longest: o.SlotWait, callTime: o.timeoutOf, stopping: w.stopping, waits: w.waits, warn: w.warn}
	w.settler = &settler{
		recorder: w.recorder, price: record.Price(o.PricePer1000), slot: slot, stopped: w.stopped, metrics: w.metrics, log: w.log, warn: w.warn,
	}
	w.uploads = &uploads{
		ledger: o.Ledger, rdb: conn, verify: o.Verify, timeout: o.timeoutOf(tasks.Upload), slot: slot, warn: w.warn,
	}
	w.caller = &caller{clients: clients, uploads: w.uploads, waits: w.waits, stopped: w.stopped}
	cordon := &cordon{gates: gates, sources: o.Admission.Sources, log: w.log, queues: map[string]bool{}}
	w.servers = &servers{
		slots: o.Slots, interval: o.TaskCheckInterval, drain: o.drain(), handler: w.deliver, onError: w.onError, conn: conn, gates: gates,
		cordoned: cordon.has, log: w.log, warn: w.warn,
	}
	cordon.changed = w.servers.refresh
	w.admitter = &admitter{
		gates: gates, slot: slot, settler: w.settler, cordon: cordon, sources: newSourceLog(w.log), metrics: w.metrics, warn: w.warn,
		countChunks: o.LimitCountsChunks,
		seeder:      upkeep.Seeder{Gates: gates, Store: w.records, Recorder: w.recorder, Log: w.log},
		pauses: &upkeep.PauseController{
			Gates: gates, Queues: w.queues, Redis: conn, Leader: w.leader, SlotWait: o.SlotWait, Log: w.log, Warn: w.warn,
		},
	}
}

func (w *Worker) clientConfig(s Source) audd.Config {
	c := audd.DefaultConfig()
	c.Token, c.Timeouts, c.Transport = s.Token, w.opts.Timeouts, w.opts.Transport
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

// fingerprint identifies a token without revealing it. Admission stores it with a halt, so that another token
// ends the halt.
func fingerprint(token string) string {
	sum := sha256.Sum256([]byte("reprise token fingerprint\n" + token))
	return hex.EncodeToString(sum[:6])
}
