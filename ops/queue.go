package ops

import (
	"context"
	"time"

	"reprise/admission"
	"reprise/internal/queue"
)

// Queues reports on queues, and pauses and resumes them.
type Queues struct{ *base }

// QueueStatus is a queue at one moment.
type QueueStatus struct {
	Queue     string        `json:"queue"`
	Pending   int64         `json:"pending"`
	Active    int64         `json:"active"`
	Scheduled int64         `json:"scheduled"`
	Retry     int64         `json:"retry"`
	Archived  int64         `json:"archived"`
	Completed int64         `json:"completed"`
	Oldest    *time.Time    `json:"oldest_pending"` // null = nothing is pending
	Paused    bool          `json:"paused"`         // asynq's flag
	Why       string        `json:"why"`            // why it is paused, in one phrase; "" = it runs
	Reasons   []PauseReason `json:"reasons"`
	// Override is the end of a time without automatic reasons, after an operator cleared the flag in asynq's web UI.
	Override *time.Time `json:"override_until,omitempty"`
}

// List returns all queues.
func (q *Queues) List(ctx context.Context) ([]QueueStatus, error) {
	g, err := q.gates(ctx)
	if err != nil {
		return nil, err
	}
	names, err := q.queues(ctx, g)
	if err != nil {
		return nil, err
	}
	stats, err := q.queue.AllStats(ctx, names)
	if err != nil {
		return nil, err
	}
	sources, err := g.State(ctx)
	if err != nil {
		return nil, err
	}
	out := []QueueStatus{}
	for _, stat := range stats {
		state, err := q.queue.PauseState(ctx, stat.Queue)
		if err != nil {
			return nil, err
		}
		out = append(out, q.report(stat, withKnownEnds(state, serving(sources, stat.Queue))))
	}
	return out, nil
}

func (q *Queues) report(stat queue.Stats, state admission.PauseState) QueueStatus {
	out := QueueStatus{
		Queue: stat.Queue, Pending: stat.Pending, Active: stat.Active, Scheduled: stat.Scheduled, Retry: stat.Retry, Archived: stat.Archived,
		Completed: stat.Completed, Oldest: stamp(stat.OldestPending), Paused: stat.Paused, Why: pauseText(state, stat.Paused, q.times()), Reasons: reasonsOf(state),
	}
	if state.Override.After(q.Now()) {
		out.Override = stamp(state.Override)
	}
	return out
}
