package admission

import (
	"errors"
	"reprise/internal/proctest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asynqFlag is asynq's pause flag of one queue, as its Inspector would show it.
type asynqFlag struct {
	on   bool
	fail bool
}

func (f *asynqFlag) PauseQueue(string) error   { return f.to(true) }
func (f *asynqFlag) UnpauseQueue(string) error { return f.to(false) }
func (f *asynqFlag) to(on bool) error {
	if f.fail {
		return errors.New("no connection")
	}
	f.on = on
	return nil
}

const queue = "recognize"

// turn reconciles once, as a worker does.
func turn(t *testing.T, p *Pauses, f *asynqFlag) (Action, error) {
	t.Helper()
	s, err := p.State(t.Context(), queue)
	require.NoError(t, err)
	action := Reconcile(s, f.on)
	return action, p.Apply(t.Context(), queue, s, action, f)
}

func settled(t *testing.T, p *Pauses, f *asynqFlag) {
	t.Helper()
	proctest.Eventually(t, func() bool {
		action, err := turn(t, p, f)
		require.NoError(t, err)
		return action == ActionNone
	})
}

func TestManualAndAutomaticReasonsNeverUndoEachOther(t *testing.T) {
	t.Parallel()
	p, f := newBench(t, nil).Pauses(), &asynqFlag{}
	auto := PauseReason{Name: "auto:halt", Until: time.Now().Add(time.Hour), By: "worker-1", Evidence: "quota of main used up"}
	_, changed, err := p.Add(t.Context(), queue, auto)
	require.NoError(t, err)
	require.True(t, changed)
	settled(t, p, f)
	require.True(t, f.on)
	_, _, err = p.Add(t.Context(), queue, PauseReason{Name: ReasonManual, By: "ops"})
	require.NoError(t, err)
	s, _, err := p.Remove(t.Context(), queue, "auto:*")
	require.NoError(t, err)
	require.Equal(t, []string{ReasonManual}, names(s))
	settled(t, p, f)
	require.True(t, f.on, "the manual pause stays")
	_, _, err = p.Remove(t.Context(), queue, ReasonManual)
	require.NoError(t, err)
	settled(t, p, f)
	require.False(t, f.on)
}

func names(s PauseState) []string {
	var out []string
	for _, r := range s.Reasons {
		out = append(out, r.Name)
	}
	return out
}

func TestPauseReasonsKeepTheirDetailsAndExpire(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := b.Pauses()
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
	require.ErrorContains(t, err, "manual or auto:")
}

func TestFlagSetElsewhereIsAdoptedAsAManualReason(t *testing.T) {
	t.Parallel()
	p, f := newBench(t, nil).Pauses(), &asynqFlag{on: true}
	settled(t, p, f)
	s, err := p.State(t.Context(), queue)
	require.NoError(t, err)
	require.Equal(t, []string{ReasonManual}, names(s))
	require.True(t, f.on)
}

func TestFlagClearedElsewhereKeepsAutomaticReasonsOutForAWhile(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p, f := b.Pauses(), &asynqFlag{}
	auto := PauseReason{Name: "auto:halt", Until: time.Now().Add(time.Hour), By: "w"}
	_, _, err := p.Add(t.Context(), queue, auto)
	require.NoError(t, err)
	settled(t, p, f)
	f.on = false // on asynq's web page
	settled(t, p, f)
	_, changed, err := p.Add(t.Context(), queue, auto)
	require.NoError(t, err)
	require.False(t, changed, "the operator keeps automatic reasons out")
	settled(t, p, f)
	require.False(t, f.on)
	b.set("pause:"+queue, "override_until", 1)
	_, changed, err = p.Add(t.Context(), queue, auto)
	require.NoError(t, err)
	require.True(t, changed)
}

func TestCrashWhileChangingTheFlagIsCompleted(t *testing.T) {
	t.Parallel()
	p, f := newBench(t, nil).Pauses(), &asynqFlag{fail: true}
	_, _, err := p.Add(t.Context(), queue, PauseReason{Name: "auto:halt", By: "w"})
	require.NoError(t, err)
	_, err = turn(t, p, f)
	require.Error(t, err)
	f.fail = false
	settled(t, p, f)
	s, err := p.State(t.Context(), queue)
	require.NoError(t, err)
	require.Equal(t, []string{"auto:halt"}, names(s), "neither adopted as manual nor dropped")
	require.True(t, f.on)

	// The flag was changed and the worker died before it confirmed that.
	_, _, err = p.Remove(t.Context(), queue, "*")
	require.NoError(t, err)
	s, err = p.State(t.Context(), queue)
	require.NoError(t, err)
	require.NoError(t, p.move(t.Context(), queue, &s, flagUnpausing, "keep"))
	f.on = false
	settled(t, p, f)
	s, err = p.State(t.Context(), queue)
	require.NoError(t, err)
	require.Empty(t, s.Reasons)
	require.Equal(t, flagOff, s.flag)
}

func TestTwoWorkersReconcileWithoutConflict(t *testing.T) {
	t.Parallel()
	p, f := newBench(t, nil).Pauses(), &asynqFlag{}
	_, _, err := p.Add(t.Context(), queue, PauseReason{Name: "auto:halt", By: "w"})
	require.NoError(t, err)
	slow, err := p.State(t.Context(), queue) // reads the set …
	require.NoError(t, err)
	settled(t, p, f) // … the other pauses …
	action := Reconcile(slow, f.on)
	require.Equal(t, ActionAdopt, action, "… so the flag looks as if it was set elsewhere")
	require.ErrorIs(t, p.Apply(t.Context(), queue, slow, action, f), ErrRaced)
	s, err := p.State(t.Context(), queue)
	require.NoError(t, err)
	require.Equal(t, []string{"auto:halt"}, names(s))
}
