package worker

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/internal/timer"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker/record"
)

// metrics are the worker's Prometheus metrics. Every set of labels is closed and created at zero, so that a rate
// counts the first event.
type metrics struct {
	registry   *prometheus.Registry
	attempts   *prometheus.CounterVec
	verdicts   *prometheus.CounterVec
	repeats    *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	units      *prometheus.CounterVec
	billed     *prometheus.CounterVec
	calls      *prometheus.HistogramVec
	settleTime prometheus.Histogram
	busy       *prometheus.GaugeVec
	outbox     prometheus.Gauge
}

var unitBases = []string{"measured", "estimated", "unavailable"}

func newMetrics(opts Options) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "reprise_" + name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		attempts: counter("attempts_total", "Calls to AudD, by outcome.", "path", "outcome"),
		verdicts: counter("verdicts_total", "Verdicts returned to the queue.", "path", "verdict"),
		repeats:  counter("settled_repeats_total", "Deliveries answered from the store without a call.", "path"),
		refusals: counter("refusals_total", "Calls that a gate refused.", "path", "gate"),
		units:    counter("units_total", "Units counted as billed, by how the number is known.", "path", "basis"),
		billed:   counter("possibly_billed_total", "Failed calls that AudD may have billed.", "path"),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "reprise_call_seconds", Help: "Duration of one AudD API call, in seconds.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600},
		}, []string{"path"}),
		settleTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "reprise_settle_seconds", Help: "Time to store a settlement.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 30},
		}),
		busy:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reprise_slots_busy", Help: "Deliveries running now."}, []string{"path"}),
		outbox: prometheus.NewGauge(prometheus.GaugeOpts{Name: "reprise_outbox_length", Help: "Settlements waiting for the store."}),
	}
	slots := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reprise_slots", Help: "Deliveries this worker runs at once."}, []string{"path"})
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reprise_build_info", Help: "Always 1; the label is the version."}, []string{"version"})
	build.WithLabelValues(opts.Version).Set(1)
	m.registry.MustRegister(m.attempts, m.verdicts, m.repeats, m.refusals, m.units, m.billed, m.calls, m.settleTime,
		m.busy, m.outbox, slots, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, p := range tasks.Paths {
		slots.WithLabelValues(string(p)).Set(float64(opts.Slots.of(p)))
		m.precreate(p)
	}
	return m
}

func (m *metrics) precreate(path tasks.Path) {
	p := string(path)
	for _, o := range tasks.Outcomes {
		m.attempts.WithLabelValues(p, string(o))
	}
	for _, v := range tasks.Verdicts {
		m.verdicts.WithLabelValues(p, string(v))
	}
	for _, g := range admission.AllGates {
		m.refusals.WithLabelValues(p, string(g))
	}
	for _, b := range unitBases {
		m.units.WithLabelValues(p, b)
	}
	m.repeats.WithLabelValues(p)
	m.billed.WithLabelValues(p)
	m.calls.WithLabelValues(p)
	m.busy.WithLabelValues(p)
}

func (m *metrics) attempt(p tasks.Path, o tasks.Outcome) {
	m.attempts.WithLabelValues(string(p), string(o)).Inc()
}

// called counts a stored call.
func (m *metrics) called(row *store.Call) {
	p := string(row.Path)
	m.attempt(row.Path, row.Outcome)
	m.calls.WithLabelValues(p).Observe(row.Latency.Seconds())
	if row.Units > 0 {
		m.units.WithLabelValues(p, row.UnitBasis).Add(float64(row.Units))
	}
	if row.PossiblyBilled && row.Verdict != tasks.Done {
		m.billed.WithLabelValues(p).Inc()
	}
}

// working counts a delivery as running until the returned function is called.
func (m *metrics) working(p tasks.Path) func() {
	g := m.busy.WithLabelValues(string(p))
	g.Inc()
	return g.Dec
}

// queueInterval is how often the gauges are read from Redis.
const queueInterval = 5 * time.Second

// queueGauges are the gauges of asynq's queues and the outbox. They keep their last values while Redis cannot be
// read.
type queueGauges struct {
	queues   *queue.Client
	recorder *record.Recorder
	outbox   prometheus.Gauge
	tasks    *prometheus.GaugeVec
	paused   *prometheus.GaugeVec
	oldest   *prometheus.GaugeVec
}

func newQueueGauges(m *metrics, queues *queue.Client, recorder *record.Recorder) *queueGauges {
	g := &queueGauges{
		queues: queues, recorder: recorder, outbox: m.outbox,
		tasks:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reprise_queue_tasks", Help: "Tasks by queue and state."}, []string{"queue", "state"}),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reprise_queue_paused", Help: "1 while the queue is paused."}, []string{"queue"}),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reprise_queue_oldest_seconds", Help: "Age of the oldest pending task."}, []string{"queue"}),
	}
	m.registry.MustRegister(g.tasks, g.paused, g.oldest)
	return g
}

// run reads the gauges at once and every 5 s until ctx ends.
func (g *queueGauges) run(ctx context.Context) {
	g.read(ctx)
	timer.Every(ctx, queueInterval, g.read)
}

func (g *queueGauges) read(ctx context.Context) {
	if n, err := g.recorder.Waiting(ctx); err == nil {
		g.outbox.Set(float64(n))
	}
	var names []string
	for _, p := range tasks.Paths {
		names = append(names, p.Queue(""))
	}
	all, err := g.queues.AllStats(ctx, names)
	if err != nil {
		return
	}
	for _, s := range all {
		for state, n := range map[queue.State]int64{
			queue.Pending: s.Pending, queue.Active: s.Active, queue.Scheduled: s.Scheduled,
			queue.Retry: s.Retry, queue.Archived: s.Archived, queue.Completed: s.Completed,
		} {
			g.tasks.WithLabelValues(s.Queue, string(state)).Set(float64(n))
		}
		paused, oldest := 0.0, 0.0
		if s.Paused {
			paused = 1
		}
		if !s.OldestPending.IsZero() {
			oldest = time.Since(s.OldestPending).Seconds()
		}
		g.paused.WithLabelValues(s.Queue).Set(paused)
		g.oldest.WithLabelValues(s.Queue).Set(oldest)
	}
}
