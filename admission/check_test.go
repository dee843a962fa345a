package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

func TestCheckPredictsAcquireAndChargesNothing(t *testing.T) {
	t.Parallel()
	g := newBench(t, nil)
	open, err := g.Check(t.Context(), tasks.Recognize, "", 1)
	require.NoError(t, err)
	require.Equal(t, []SourceCheck{{Source: "main"}}, open)
	_, _, blocked := AllBlocked(open)
	require.False(t, blocked)

	_, err = g.Halt(t.Context(), Halt{Source: "main", Path: tasks.Recognize, Reason: "quota", By: "test", ProbeAfter: time.Hour})
	require.NoError(t, err)
	open, err = g.Check(t.Context(), tasks.Recognize, "", 1)
	require.NoError(t, err)
	gate, wait, blocked := AllBlocked(open)
	require.True(t, blocked)
	require.Equal(t, GateHalt, gate)
	require.InDelta(t, time.Hour, wait, float64(about))

	_, err = g.Resume(t.Context(), "main", tasks.Recognize, "test")
	require.NoError(t, err)
	for range 2 { // a check does not use up the probe
		open, err = g.Check(t.Context(), tasks.Recognize, "", 1)
		require.NoError(t, err)
		require.Equal(t, []SourceCheck{{Source: "main", Probe: true}}, open)
	}
}

// Regression: a check of zero units reported a used-up budget as open.
func TestCheckComparesUnitsWithTheBudget(t *testing.T) {
	t.Parallel()
	g := newBench(t, oneSource(Limits{UnitsPerDay: 10}))
	_, err := g.Acquire(t.Context(), request(keyOf(0)))
	g.seedAll(err, 8)
	blocked := func(units int64) (Gate, bool) {
		open, err := g.Check(t.Context(), tasks.Recognize, "", units)
		require.NoError(t, err)
		gate, _, blocked := AllBlocked(open)
		return gate, blocked
	}
	_, no := blocked(2)
	require.False(t, no)
	gate, yes := blocked(3)
	require.True(t, yes)
	require.Equal(t, GateUnitsDay, gate)
	_, no = blocked(11)
	require.False(t, no, "a call larger than the budget counts as admitted, because its task is archived at its next delivery")
	g.settle(g.acquire(request(keyOf(1))), done)
	g.settle(g.acquire(request(keyOf(2))), done)
	_, yes = blocked(1)
	require.True(t, yes)
}
