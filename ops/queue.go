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
	queue.Stats
	Oldest  *time.Time    `json:"oldest_pending"` // null = nothing is pending
	Why     string        `json:"why"`            // why it is paused, in one phrase; "" = it runs
	Reasons []PauseReason `json:"reasons"`
	// Override is the end of a time without automatic reasons, after an operator cleared the flag in asynq's web UI.
	Override *time.Time `json:"override_until,omitempty"`
}

// List returns all queues.
func (q *Queues) List(ctx context.Context) ([]QueueStatus, error) {
	v, err := q.survey(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := q.queue.AllStats(ctx, v.queues)
	if err != nil {
		return nil, err
	}
	out := []QueueStatus{}
	for _, stat := range stats {
		state, err := q.queue.PauseState(ctx, stat.Queue)
		if err != nil {
			return nil, err
		}
		out = append(out, q.report(stat, withKnownEnds(state, serving(v.state, stat.Queue))))
	}
	return out, nil
}

func (q *Queues) report(stat queue.Stats, state admission.PauseState) QueueStatus {
	out := QueueStatus{
		Stats: stat, Oldest: stamp(stat.OldestPending), Why: pauseText(state, stat.Paused, q.times()), Reasons: reasonsOf(state),
	}
	if state.Override.After(q.Now()) {
		out.Override = stamp(state.Override)
	}
	return out
}
