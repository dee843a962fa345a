package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

func TestTaskStateReturnsRecordPermitAndSources(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		oneSource(Limits{Concurrency: 4, RequestsPerMinute: 600, RequestBurst: 10, UnitsPerDay: 10})(c)
		c.Groups = map[string]Group{"backfill": {Ceiling: 0.5, UnitsPerMonth: 100}}
		c.PermitTTL = 10 * time.Minute
	})
	s, err := b.TaskState(t.Context(), keyOf(1))
	require.NoError(t, err)
	require.Equal(t, tasks.AttemptRecord{}, s.Record)
	_, err = b.Acquire(t.Context(), backfill(keyOf(1)))
	b.seedAll(err, 2)
	b.settle(b.acquire(backfill(keyOf(1))), failed)
	p := b.acquire(backfill(keyOf(1)))
	_, err = b.Halt(t.Context(), Halt{Source: "main", Path: tasks.Recognize, Reason: "quota", By: "ops", ProbeAfter: time.Hour})
	require.NoError(t, err)

	s, err = b.TaskState(t.Context(), keyOf(1))
	require.NoError(t, err)
	require.True(t, s.InFlight)
	require.Equal(t, p.At(), s.Since)
	require.Equal(t, "main", s.Source)
	require.Equal(t, "backfill", s.Group)
	require.Equal(t, 1, s.Record.Counted)
	require.WithinDuration(t, s.State.Now.Add(10*time.Minute), s.Until, about)
	require.Len(t, s.State.Sources, 1)
	src := s.State.Sources[0]
	require.EqualValues(t, 1, src.InFlight)
	require.EqualValues(t, 4, src.Concurrency)
	require.EqualValues(t, 600, src.RequestsPerMinute)
	require.False(t, src.RateLearned)
	gate, until := src.Blocked(s.State.Now)
	require.Equal(t, GateHalt, gate)
	require.WithinDuration(t, s.State.Now.Add(time.Hour), until, about)
	require.EqualValues(t, 10, src.Budgets[0].Cap)
	require.EqualValues(t, 3, src.Budgets[0].Spent)
	require.EqualValues(t, 1, src.Budgets[0].Reserved)
	require.EqualValues(t, 1, s.State.Groups[0].InFlight)
	require.Equal(t, "group/backfill", s.State.Groups[0].Budgets[0].Of)

	_, err = b.TaskState(t.Context(), "nonsense")
	require.ErrorContains(t, err, "nonsense")
}

func TestStateReturnsEverySourceWithItsLearnedLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t, twoSources(HealthAware))
	b.acquire(request(keyOf(1)))
	s, err := b.State(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Sources, 6)
	require.Positive(t, s.Revision)
	require.EqualValues(t, 1, s.InFlight)
	require.EqualValues(t, 8, s.Sources[0].Concurrency)
	require.True(t, s.Sources[0].ConcurrencyLearned)
	require.InDelta(t, 1, s.Sources[0].Health, 0.001)
}
