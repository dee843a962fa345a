package upkeep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/queue"
	"reprise/tasks"
)

// sent latches the upload of a task, by an attempt that reports nothing.
func (r *rig) sent(p tasks.Payload, at time.Time) {
	r.t.Helper()
	_, err := r.ledger.Latch(r.t.Context(), idempotency.LatchRequest{
		Key: p.Key, AttemptID: "dead-" + p.Key, Source: "main", AudioID: *p.Params.AudioID, SHA256: p.Input.SHA256, Timeout: time.Minute, At: at,
	})
	require.NoError(r.t, err)
}

func TestOverdueSendIsQueuedUnlessADeliveryIsDue(t *testing.T) {
	t.Parallel()
	long, now := time.Now().Add(-time.Hour), time.Now()
	for name, c := range map[string]struct {
		at       time.Time
		was      queue.State
		finished bool
		expected queue.State
	}{
		"completed by a late ack":            {at: long, was: queue.Completed, expected: queue.Pending},
		"archived":                           {at: long, was: queue.Archived, expected: queue.Pending},
		"lost by Redis":                      {at: long, was: queue.NotQueued, expected: queue.Pending},
		"active":                             {at: long, was: queue.Active, expected: queue.Active},
		"not overdue":                        {at: now, was: queue.Completed, expected: queue.Completed},
		"finished in the store":              {at: long, was: queue.Completed, finished: true, expected: queue.Completed},
		"pending, as an operator resumed it": {at: long, was: queue.Pending, expected: queue.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.task(tasks.Upload, 7)
			if c.was != queue.NotQueued {
				r.queued(p, c.was)
			}
			r.sent(p, c.at)
			if c.finished {
				r.settle(p, tasks.Hold, tasks.Crash)
			}
			job := OverdueSends{Ledger: r.ledger, Queues: r.queues, Store: r.store, Leader: r.leader, Log: r.slog, Warn: r.warn}
			require.NoError(t, job.end(t.Context(), p.Key, now))
			require.Equal(t, c.expected, r.state(p))
			st, err := r.ledger.Status(t.Context(), p.Key)
			require.NoError(t, err)
			require.Equal(t, idempotency.Sent, st.State, "only its delivery changes the ledger")
		})
	}
}

func TestOverdueSendWithoutATaskRowBecomesUncertain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.ledger.Latch(t.Context(), idempotency.LatchRequest{
		Key: "upload_raw", AttemptID: "dead", Source: "main", AudioID: 9, SHA256: "s", Timeout: time.Minute, At: time.Now().Add(-time.Hour),
	})
	require.NoError(t, err)
	job := OverdueSends{Ledger: r.ledger, Queues: r.queues, Store: r.store, Leader: r.leader, Log: r.slog, Warn: r.warn}
	require.NoError(t, job.end(t.Context(), "upload_raw", time.Now()))
	st, err := r.ledger.Status(t.Context(), "upload_raw")
	require.NoError(t, err)
	require.Equal(t, idempotency.Uncertain, st.State)
}
