package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

func TestAskTellsWhatAcquireWouldAndTakesNothing(t *testing.T) {
	t.Parallel()
	g := newBench(t, nil)
	open, err := g.Check(t.Context(), tasks.Recognize, "", 1)
	require.NoError(t, err)
	require.Equal(t, []SourceCheck{{Source: "main"}}, open)
	_, _, shut := AllBlocked(open)
	require.False(t, shut)

	_, err = g.Halt(t.Context(), Halt{Source: "main", Path: tasks.Recognize, Reason: "quota", By: "test", ProbeAfter: time.Hour})
	require.NoError(t, err)
	open, err = g.Check(t.Context(), tasks.Recognize, "", 1)
	require.NoError(t, err)
	gate, wait, shut := AllBlocked(open)
	require.True(t, shut)
	require.Equal(t, GateHalt, gate)
	require.InDelta(t, time.Hour, wait, float64(about))

	_, err = g.Resume(t.Context(), "main", tasks.Recognize, "test")
	require.NoError(t, err)
	for range 2 { // asking does not use the probe up
		open, err = g.Check(t.Context(), tasks.Recognize, "", 1)
		require.NoError(t, err)
		require.Equal(t, []SourceCheck{{Source: "main", Probe: true}}, open)
	}
}

// A budget that is used up to the last unit once looked open to a call of none.
func TestAskKnowsWhetherTheUnitsStillFitTheBudget(t *testing.T) {
	t.Parallel()
	g := newBench(t, oneSource(Limits{UnitsPerDay: 10}))
	_, err := g.Acquire(t.Context(), request(keyOf(0)))
	g.seedAll(err, 8)
	shut := func(units int64) (Gate, bool) {
		open, err := g.Check(t.Context(), tasks.Recognize, "", units)
		require.NoError(t, err)
		gate, _, shut := AllBlocked(open)
		return gate, shut
	}
	_, no := shut(2)
	require.False(t, no)
	gate, yes := shut(3)
	require.True(t, yes)
	require.Equal(t, GateUnitsDay, gate)
	_, no = shut(11)
	require.False(t, no, "more than a whole budget: the task has to hear of it")
	g.settle(g.acquire(request(keyOf(1))), done)
	g.settle(g.acquire(request(keyOf(2))), done)
	_, yes = shut(1)
	require.True(t, yes)
}
