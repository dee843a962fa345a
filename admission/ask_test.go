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
	open, err := g.Ask(t.Context(), tasks.Recognize, "")
	require.NoError(t, err)
	require.Equal(t, []Opening{{Source: "main"}}, open)
	_, _, shut := ShutUntil(open)
	require.False(t, shut)

	_, err = g.Halt(t.Context(), Halt{Source: "main", Path: tasks.Recognize, Reason: "quota", By: "test", ProbeAfter: time.Hour})
	require.NoError(t, err)
	open, err = g.Ask(t.Context(), tasks.Recognize, "")
	require.NoError(t, err)
	gate, wait, shut := ShutUntil(open)
	require.True(t, shut)
	require.Equal(t, GateHalt, gate)
	require.InDelta(t, time.Hour, wait, float64(time.Minute))

	_, err = g.Resume(t.Context(), "main", tasks.Recognize, "test")
	require.NoError(t, err)
	for range 2 { // asking does not use the probe up
		open, err = g.Ask(t.Context(), tasks.Recognize, "")
		require.NoError(t, err)
		require.Equal(t, []Opening{{Source: "main", Probe: true}}, open)
	}
}
