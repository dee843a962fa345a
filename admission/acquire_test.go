package admission

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
	"reprise/tasks"
)

func TestOneKeyIsNeverInFlightTwice(t *testing.T) {
	t.Parallel()
	rdb := redistest.DB(t)
	cfg := DefaultConfig()
	g, err := New(rdb, cfg)
	require.NoError(t, err)
	r := Request{Key: "recognize_x", AttemptID: "a1", Path: tasks.Recognize, Units: 1, UnitsBounded: true}
	p, err := g.Acquire(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, p.Valid())
	require.NoError(t, g.Renew(t.Context()))
	r.AttemptID = "a2"
	_, err = g.Acquire(t.Context(), r)
	var f *InFlight
	require.ErrorAs(t, err, &f)
	require.NoError(t, g.Settle(t.Context(), p, Settlement{Outcome: tasks.Unavailable, Channel: ChannelFailure, Counted: true, PossiblyBilled: true}))
	require.NoError(t, g.Settle(t.Context(), p, Settlement{Outcome: tasks.Unavailable, Channel: ChannelFailure, Counted: true, PossiblyBilled: true}))
	p2, err := g.Acquire(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, 1, p2.Record.Counted)
	require.Equal(t, 1, p2.Record.PossiblyBilled)
	require.NoError(t, g.Settle(t.Context(), p2, Settlement{Outcome: tasks.Match, Channel: ChannelSuccess, ClearRecord: true}))
}
