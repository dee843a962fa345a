package worker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
)

// metrics are the worker's figures. Every label set is closed and created at
// zero, so that a rate over a first failure is not lost.
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
		verdicts: counter("verdicts_total", "Answers to the queue.", "path", "verdict"),
		repeats:  counter("settled_repeats_total", "Deliveries of tasks that were settled already: no call was made.", "path"),
		refusals: counter("refusals_total", "Calls that a gate refused.", "path", "gate"),
		units:    counter("units_total", "Units kept as billed, by how they are known.", "path", "basis"),
		billed:   counter("possibly_billed_total", "Failed calls that AudD may have billed.", "path"),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "reprise_call_seconds", Help: "Time of one AudD call.",
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
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reprise_build_info", Help: "1, with the version as label."}, []string{"version"})
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

func (m *metrics) verdict(p tasks.Path, v tasks.Verdict) {
	m.verdicts.WithLabelValues(string(p), string(v)).Inc()
}

func (m *metrics) repeated(p tasks.Path) { m.repeats.WithLabelValues(string(p)).Inc() }

func (m *metrics) refusal(p tasks.Path, g admission.Gate) {
	m.refusals.WithLabelValues(string(p), string(g)).Inc()
}

func (m *metrics) settleTook(d time.Duration) { m.settleTime.Observe(d.Seconds()) }

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

// working counts a delivery as running until the result is called.
func (m *metrics) working(p tasks.Path) func() {
	g := m.busy.WithLabelValues(string(p))
	g.Inc()
	return g.Dec
}
