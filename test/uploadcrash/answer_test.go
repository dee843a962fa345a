package uploadcrash

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/store"
	"reprise/tasks"
)

func TestUploadWithResponse503IsSentOnceAndUncertain(t *testing.T) {
	t.Parallel()
	u := newUpload(t, plan{sim: auddsim.Config{Rules: []auddsim.Rule{{Path: auddsim.PathUpload, Status: http.StatusServiceUnavailable}}}})
	u.startFirst()
	u.enqueue()
	u.requireEnd(idempotency.Uncertain)
	require.Equal(t, tasks.Unavailable, u.Status(u.task).Outcome)
	require.EqualValues(t, 1, u.Sim.Bill().Upload(audioID).Started)
}

func TestRejectedUploadIsSentOnceAndFinal(t *testing.T) {
	t.Parallel()
	u := newUpload(t, plan{sim: auddsim.Config{Rules: []auddsim.Rule{{Path: auddsim.PathUpload, Code: 300}}}})
	u.startFirst()
	u.enqueue()
	u.requireEnd(idempotency.Rejected)
	require.True(t, u.Status(u.task).Final)
	require.EqualValues(t, 1, u.Sim.Bill().Upload(audioID).Started)
}

func TestUploadAfterTwoRefusedConnectionsIsSentOnce(t *testing.T) {
	t.Parallel()
	u := newUpload(t, plan{})
	u.toAudD.close()
	u.startFirst()
	u.enqueue()
	u.unsent(2)
	u.toAudD.open()
	u.requireEnd(idempotency.Settled)
	require.EqualValues(t, 1, u.Sim.Bill().Upload(audioID).Started)
}

// A second worker is started with the right host.
func TestUploadAfterTwoFailedHostLookupsIsSentOnce(t *testing.T) {
	t.Parallel()
	u := newUpload(t, plan{raw: true})
	u.first = u.worker("first", u.Server.Addr(), "http://audd.invalid")
	u.enqueue()
	u.unsent(2)
	u.first.Stop(patience)
	u.startSecond()
	u.requireEnd(idempotency.Settled)
	require.EqualValues(t, 1, u.Sim.Bill().Upload(audioID).Started)
}

// unsent waits for n calls and requires that none of them sent a byte.
func (u *upload) unsent(n int) {
	u.T.Helper()
	var calls []store.Call
	u.hurry(func() bool {
		calls = u.Calls(store.CallFilter{Key: u.task.Key})
		return len(calls) >= n
	}, "calls %+v", func() any { return calls })
	require.False(u.T, slices.ContainsFunc(calls, func(c store.Call) bool { return c.Outcome != tasks.UnavailableUnsent || c.Units != 0 }), "calls %+v", calls)
	require.Equal(u.T, idempotency.Free, u.ledgerEntry().State)
}

func TestRunTaskNeverSendsARunningOrFinishedUploadAgain(t *testing.T) {
	t.Parallel()
	u := newUpload(t, plan{})
	s := inSimulator(u, auddsim.StageBeforeAnswer)
	u.startFirst()
	u.enqueue()
	s.wait()
	inspect := u.Inspector
	require.Error(t, inspect.RunTask(queue, u.task.Key))
	s.release()
	u.requireEnd(idempotency.Settled)
	require.NoError(t, inspect.RunTask(queue, u.task.Key))
	u.hurry(func() bool { return logged(u.first, u.task.Key, "answered from the store: no call") })
	u.requireEnd(idempotency.Settled)
	require.EqualValues(t, 1, u.Sim.Bill().Upload(audioID).Started)
}

// When the drain timeout is shorter than the call, the next worker gets the task
// while the call still runs. asynq gives up 30 s after the drain.
func TestUploadIsSentOnceWhenTheWorkerShutsDownDuringTheCall(t *testing.T) {
	t.Parallel()
	u := newUpload(t, plan{})
	s := inSimulator(u, auddsim.StageBeforeAnswer)
	u.startFirst("REPRISE_DRAIN=1s")
	u.enqueue()
	s.wait()
	u.startSecond()
	u.first.Terminate()
	proctest.Eventually(t, func() bool { return u.seen(u.second) || !u.first.Running() }, "no second delivery")
	u.first.Wait(patience)
	s.release()
	u.ageSends()
	u.requireEnd(idempotency.Uncertain, idempotency.Settled)
}

func TestVerificationSettlesAnUploadInTheCatalogForOneUnit(t *testing.T) {
	t.Parallel()
	u := newUpload(t, plan{sim: auddsim.Config{MatchShare: -1, Rules: []auddsim.Rule{
		{Path: auddsim.PathUpload, Fault: auddsim.FaultResetBeforeAnswer},
	}}})
	u.env = []string{"REPRISE_UPLOADS_VERIFY=recognize", "REPRISE_UPLOADS_VERIFY_DELAY=1s"}
	u.startFirst()
	u.enqueue()
	u.hurry(func() bool {
		return u.ledgerEntry().State == idempotency.Settled && u.Status(u.task).Verdict == tasks.Done
	},
		"ledger %+v\nstore %+v", func() any { return u.ledgerEntry() }, func() any { return u.Status(u.task) })
	u.requireEnd(idempotency.Settled)
	bill := u.Sim.Bill()
	require.EqualValues(t, 1, bill.Upload(audioID).Started)
	require.EqualValues(t, 1, bill.ByPath[auddsim.PathRecognize], "units to verify")
}

func TestVerificationDoesNotSettleAnUploadMissingFromTheCatalog(t *testing.T) {
	t.Parallel()
	u := newUpload(t, plan{size: big, sim: auddsim.Config{MatchShare: -1, Rules: []auddsim.Rule{
		{Path: auddsim.PathUpload, Fault: auddsim.FaultResetWithinBody},
	}}})
	u.env = []string{"REPRISE_UPLOADS_VERIFY=recognize", "REPRISE_UPLOADS_VERIFY_DELAY=1s"}
	u.startFirst()
	u.enqueue()
	u.hurry(func() bool { return u.ledgerEntry().Send.Tries > 0 && u.Sim.Bill().ByPath[auddsim.PathRecognize] > 0 })
	u.requireEnd(idempotency.Uncertain)
	require.Empty(t, u.Sim.Catalog())
	require.EqualValues(t, 1, u.Sim.Bill().Upload(audioID).Started)
}
