// Package dashboards has a Grafana dashboard, a Prometheus scrape configuration and alert rules for Reprise,
// and the list of all metrics that they may use.
package dashboards

import "embed"

// Files are reprise.json (Grafana), prometheus.yml and rules.yml.
//
//go:embed reprise.json prometheus.yml rules.yml
var Files embed.FS

// The Prometheus types of metrics.
const counter, gauge, histogram = "counter", "gauge", "histogram"

// Metric is one metric of a worker. Every label has a closed set of values, so the number of series is bounded.
type Metric struct {
	Name   string
	Kind   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// Metrics lists every metric of a worker: calls, verdicts, units, gates, settling, queues.
var Metrics = []Metric{
	{"reprise_attempts_total", counter, []string{"path", "outcome"}, "Attempts by outcome."},
	{"reprise_verdicts_total", counter, []string{"path", "verdict"}, "Verdicts given to the queue."},
	{"reprise_settled_repeats_total", counter, []string{"path"}, "Deliveries answered from the store without a call."},
	{"reprise_call_seconds", histogram, []string{"path"}, "Time until AudD's response."},
	{"reprise_units_total", counter, []string{"path", "basis"}, "Billed units, by how the number is known."},
	{"reprise_possibly_billed_total", counter, []string{"path"}, "Calls without a response that may have been billed."},
	{"reprise_slots", gauge, []string{"path"}, "Slots of this worker."},
	{"reprise_slots_busy", gauge, []string{"path"}, "Slots with a running delivery."},
	{"reprise_refusals_total", counter, []string{"path", "gate"}, "Refusals by gate."},
	{"reprise_settle_seconds", histogram, nil, "Time until a settlement is durable."},
	{"reprise_outbox_length", gauge, nil, "Settlements in Redis that wait for the store."},
	{"reprise_queue_tasks", gauge, []string{"queue", "state"}, "Tasks by queue and state."},
	{"reprise_queue_oldest_seconds", gauge, []string{"queue"}, "Age of the oldest pending task."},
	{"reprise_queue_paused", gauge, []string{"queue"}, "1 while the queue is paused."},
	{"reprise_build_info", gauge, []string{"version"}, "Always 1; the label is the version."},
}
