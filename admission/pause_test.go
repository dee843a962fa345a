package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const queue = "recognize"

func TestRemovingAutomaticReasonsKeepsTheManualOne(t *testing.T) {
	t.Parallel()
	p := newBench(t, nil).pauses()
	auto := PauseReason{Name: "auto:halt", Until: time.Now().Add(time.Hour), By: "worker-1", Evidence: "quota of main used up"}
	_, changed, err := p.Add(t.Context(), queue, auto)
	require.NoError(t, err)
	require.True(t, changed)
	_, _, err = p.Add(t.Context(), queue, PauseReason{Name: ReasonManual, By: "ops"})
	require.NoError(t, err)
	s, _, err := p.Remove(t.Context(), queue, "auto:*")
	require.NoError(t, err)
	require.Equal(t, []string{ReasonManual}, names(s))
	s, _, err = p.Remove(t.Context(), queue, ReasonManual)
	require.NoError(t, err)
	require.False(t, s.Paused())
}

func names(s PauseState) []string {
	var out []string
	for _, r := range s.Reasons {
		out = append(out, r.Name)
	}
	return out
}

func TestPauseReasonsKeepTheirDetailsUntilTheyEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := b.pauses()
	until := time.Now().Add(time.Hour)
	_, _, err := p.Add(t.Context(), queue, PauseReason{Name: "auto:throttle", Until: until, By: "worker 1", Evidence: "611: limit of streams"})
	require.NoError(t, err)
	s, err := p.State(t.Context(), queue)
	require.NoError(t, err)
	require.Len(t, s.Reasons, 1)
	require.Equal(t, "611: limit of streams", s.Reasons[0].Evidence)
	require.Equal(t, "worker 1", s.Reasons[0].By)
	require.WithinDuration(t, until, s.Reasons[0].Until, about)
	b.set("pause:"+queue, "reason:auto:throttle", `{"name":"auto:throttle","expires_at":1000,"since":900,"by":"w","evidence":"ended"}`)
	s, err = p.State(t.Context(), queue)
	require.NoError(t, err)
	require.False(t, s.Paused())
	_, _, err = p.Add(t.Context(), queue, PauseReason{Name: "because"})
	require.ErrorContains(t, err, `must be "manual" or begin with "auto:"`)
}

func TestStoreFlagFailsAfterAnotherProcessChangedTheReasons(t *testing.T) {
	t.Parallel()
	p := newBench(t, nil).pauses()
	_, _, err := p.Add(t.Context(), queue, PauseReason{Name: "auto:halt", By: "w"})
	require.NoError(t, err)
	old, err := p.State(t.Context(), queue)
	require.NoError(t, err)
	current := old
	require.NoError(t, p.StoreFlag(t.Context(), queue, &current, FlagOn, ReasonsKeep))
	require.ErrorIs(t, p.StoreFlag(t.Context(), queue, &old, FlagOn, ReasonsAdopt), ErrRaced)
	s, err := p.State(t.Context(), queue)
	require.NoError(t, err)
	require.Equal(t, []string{"auto:halt"}, names(s))
	require.Equal(t, FlagOn, s.Flag)
}
