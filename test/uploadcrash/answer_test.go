package uploadcrash

import (
	"net/http"
	"slices"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/store"
	"reprise/tasks"
)

func TestHTTP503InAnswerIsOneSendAndUncertain(t *testing.T) {
	t.Parallel()
	r := newRig(t, plan{sim: auddsim.Config{Rules: []auddsim.Rule{{Path: auddsim.PathUpload, Status: http.StatusServiceUnavailable}}}})
	r.startFirst()
	r.enqueue()
	r.settles(idempotency.Uncertain)
	require.Equal(t, tasks.Unavailable, r.standing().Outcome)
	require.EqualValues(t, 1, r.sim.Bill().Upload(audioID).Started)
}

func TestUploadAudDRejectsIsFinalAfterOneSend(t *testing.T) {
	t.Parallel()
	r := newRig(t, plan{sim: auddsim.Config{Rules: []auddsim.Rule{{Path: auddsim.PathUpload, Code: 300}}}})
	r.startFirst()
	r.enqueue()
	r.settles(idempotency.Rejected)
	require.True(t, r.standing().Final)
	require.EqualValues(t, 1, r.sim.Bill().Upload(audioID).Started)
}

func TestRefusedConnectionTwiceThenSuccessIsOneSend(t *testing.T) {
	t.Parallel()
	r := newRig(t, plan{})
	r.upstream.shut()
	r.startFirst()
	r.enqueue()
	r.unsent(2)
	r.upstream.open()
	r.settles(idempotency.Settled)
	require.EqualValues(t, 1, r.sim.Bill().Upload(audioID).Started)
}

// The worker is started anew with the right host; the queue goes on.
func TestHostThatDoesNotResolveTwiceThenSuccessIsOneSend(t *testing.T) {
	t.Parallel()
	r := newRig(t, plan{raw: true})
	r.first = r.worker("first", r.server.Addr(), "http://audd.invalid")
	r.enqueue()
	r.unsent(2)
	r.first.Stop(patience)
	r.startSecond()
	r.settles(idempotency.Settled)
	require.EqualValues(t, 1, r.sim.Bill().Upload(audioID).Started)
}

// unsent waits until so many calls ended before a byte had left.
func (r *rig) unsent(n int) {
	r.t.Helper()
	var calls []store.Call
	require.True(r.t, r.hurry(patience, func() bool {
		var err error
		calls, err = r.store.Calls(r.t.Context(), store.CallFilter{Key: r.task.Key})
		return err == nil && len(calls) >= n
	}), "calls %+v", calls)
	require.False(r.t, slices.ContainsFunc(calls, func(c store.Call) bool { return c.Outcome != tasks.UnavailableUnsent || c.Units != 0 }), "calls %+v", calls)
	require.Equal(r.t, idempotency.Free, r.look().State)
}

func TestRunButtonIsRefusedWhileTheUploadIsOnItsWayAndRepeatsTheVerdictAfter(t *testing.T) {
	t.Parallel()
	r := newRig(t, plan{})
	s := inSimulator(r, auddsim.StageBeforeAnswer)
	r.startFirst()
	r.enqueue()
	s.wait()
	inspect := asynq.NewInspectorFromRedisClient(r.rdb)
	require.Error(t, inspect.RunTask(queue, r.task.Key))
	s.release()
	r.settles(idempotency.Settled)
	require.NoError(t, inspect.RunTask(queue, r.task.Key))
	require.True(t, r.hurry(patience, func() bool { return said(r.first, r.task.Key, "answered from the store: no call") }))
	r.settles(idempotency.Settled)
	require.EqualValues(t, 1, r.sim.Bill().Upload(audioID).Started)
}

// A stop whose drain is shorter than the call hands the task to the next
// worker while the call still runs. asynq gives up 30 s after the drain.
func TestShutdownThatHandsTheTaskOnWhileTheCallRunsIsOneSend(t *testing.T) {
	t.Parallel()
	r := newRig(t, plan{})
	s := inSimulator(r, auddsim.StageBeforeAnswer)
	r.startFirst("REPRISE_DRAIN=1s")
	r.enqueue()
	s.wait()
	r.startSecond()
	r.first.Terminate()
	require.True(t, eventually(patience, func() bool { return r.seen(r.second) || !r.first.Running() }), "the task is not handed on")
	r.first.Wait(patience)
	s.release()
	r.ageSends()
	r.settles(idempotency.Uncertain, idempotency.Settled)
}

func TestRecognitionSettlesAnUploadThatArrivedForOneUnit(t *testing.T) {
	t.Parallel()
	r := newRig(t, plan{sim: auddsim.Config{MatchShare: -1, Rules: []auddsim.Rule{
		{Path: auddsim.PathUpload, Fault: auddsim.FaultResetBeforeAnswer},
	}}})
	r.env = []string{"REPRISE_UPLOADS_VERIFY=recognize", "REPRISE_UPLOADS_VERIFY_DELAY=1s"}
	r.startFirst()
	r.enqueue()
	require.True(t, r.hurry(patience, func() bool { return r.look().State == idempotency.Settled && r.standing().Verdict == tasks.Done }), "ledger %+v\nstore %+v", r.look(), r.standing())
	r.settles(idempotency.Settled)
	bill := r.sim.Bill()
	require.EqualValues(t, 1, bill.Upload(audioID).Started)
	require.EqualValues(t, 1, bill.ByPath[auddsim.PathRecognize], "units to verify")
}

func TestRecognitionDoesNotSettleAnUploadThatDidNotArrive(t *testing.T) {
	t.Parallel()
	r := newRig(t, plan{size: big, sim: auddsim.Config{MatchShare: -1, Rules: []auddsim.Rule{
		{Path: auddsim.PathUpload, Fault: auddsim.FaultResetWithinBody},
	}}})
	r.env = []string{"REPRISE_UPLOADS_VERIFY=recognize", "REPRISE_UPLOADS_VERIFY_DELAY=1s"}
	r.startFirst()
	r.enqueue()
	require.True(t, r.hurry(patience, func() bool { return r.look().Send.Tries > 0 && r.sim.Bill().ByPath[auddsim.PathRecognize] > 0 }))
	r.settles(idempotency.Uncertain)
	require.Empty(t, r.sim.Catalog())
	require.EqualValues(t, 1, r.sim.Bill().Upload(audioID).Started)
}
