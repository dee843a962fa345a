package worker

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"reprise/internal/queue"
	"reprise/tasks"
	"reprise/worker/record"
	"reprise/worker/upkeep"
)

// queueInterval is how often the gauges that need Redis are read.
const queueInterval = 5 * time.Second

// queueGauges shows asynq's queues and the outbox. While Redis cannot be read
// they keep their last figures.
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

// run reads the gauges until ctx ends.
func (g *queueGauges) run(ctx context.Context) {
	g.read(ctx)
	upkeep.Every(ctx, queueInterval, g.read)
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
