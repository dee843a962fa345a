package worker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
	"reprise/worker/record"
)

// track writes a file of distinct content and returns the payload of its upload.
func (r *rig) track(name string, id int64) tasks.Payload {
	r.t.Helper()
	in := r.clip(name).Input
	p, err := tasks.New(tasks.Upload, in, tasks.Params{AudioID: &id, Source: "main"}, 0)
	require.NoError(r.t, err)
	return p
}

func (r *rig) ledgerState(p tasks.Payload) idempotency.State {
	r.t.Helper()
	st, err := r.ledger.Status(r.t.Context(), p.Key)
	require.NoError(r.t, err)
	return st.State
}

func TestUploadIsSentOnceAndSettledInTheLedger(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, nil)
	p := r.track("track.wav", 146)
	r.enqueue(p)
	r.run()
	s := r.verdict(p, 15*time.Second)
	require.Equal(t, tasks.Uploaded, s.Outcome)
	require.Equal(t, idempotency.Settled, r.ledgerState(p))
	r.state(p, asynq.TaskStateCompleted, 5*time.Second)
	require.NoError(t, r.inspect.RunTask("upload", p.Key))
	r.state(p, asynq.TaskStateCompleted, 5*time.Second)
	require.EqualValues(t, 1, r.sim.Bill().Upload(146).Started)
	require.Len(t, r.sim.Catalog(), 1)
}

func TestUploadAnswered503IsHeldAsUncertainAfterOneSend(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{{Path: "upload", Status: 503}}}, nil)
	p := r.track("doubt.wav", 7)
	r.enqueue(p)
	r.run()
	s := r.verdict(p, 15*time.Second)
	require.Equal(t, tasks.Hold, s.Verdict)
	require.Equal(t, tasks.Unavailable, s.Outcome)
	require.Equal(t, idempotency.Uncertain, r.ledgerState(p))
	r.state(p, asynq.TaskStateArchived, 5*time.Second)
	require.NoError(t, r.inspect.RunTask("upload", p.Key), "asynq's run button")
	r.state(p, asynq.TaskStateArchived, 5*time.Second)
	require.EqualValues(t, 1, r.sim.Bill().Upload(7).Started)
}

func TestThrottledUploadIsSentAfterARetry(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{{Path: "upload", Status: 429, Times: 2}}}, nil)
	p := r.track("later.wav", 9)
	r.enqueue(p)
	r.run()
	s := r.verdict(p, 40*time.Second)
	require.Equal(t, tasks.Uploaded, s.Outcome)
	st, err := r.ledger.Status(t.Context(), p.Key)
	require.NoError(t, err)
	require.EqualValues(t, 2, st.Generation, "each definite refusal releases the latch")
}

func TestOtherContentForAUsedSlotIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, nil)
	first, second := r.track("a.wav", 5), r.track("b.wav", 5)
	r.enqueue(first)
	r.run()
	r.verdict(first, 15*time.Second)
	r.enqueue(second)
	s := r.verdict(second, 15*time.Second)
	require.Equal(t, tasks.Archive, s.Verdict)
	require.Contains(t, s.Reason, "belongs to other content")
	require.EqualValues(t, 1, r.sim.Bill().Upload(5).Started)
}

func TestUploadWhoseWorkerDiedAfterTheLatchIsNotSentAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, nil)
	p := r.track("lost.wav", 11)
	// A worker that dies while its request is in flight leaves a latch.
	at := time.Now().Add(-time.Hour)
	_, err := r.ledger.Latch(t.Context(), idempotency.LatchRequest{
		Key: p.Key, AttemptID: "dead", Source: "main", AudioID: 11, SHA256: p.Input.SHA256, Timeout: time.Minute, At: at,
	})
	require.NoError(t, err)
	r.enqueue(p)
	r.run()
	s := r.verdict(p, 15*time.Second)
	require.Equal(t, tasks.Hold, s.Verdict)
	require.Zero(t, r.sim.Bill().Upload(11).Started)
	// The attempt was only frozen: its late answer wins over uncertain.
	got, err := r.ledger.Conclude(t.Context(), "dead", idempotency.Conclusion{Effect: tasks.LatchSettled, Outcome: tasks.Uploaded, At: time.Now()})
	require.NoError(t, err)
	require.Equal(t, idempotency.Settled, got)
}

func TestRestoredLedgerBlocksUploads(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, nil)
	require.NoError(t, r.rdb.HSet(t.Context(), "reprise:{ledger}:mark", "ledger", "another", "seq", 40, "token", "x").Err())
	p := r.track("behind.wav", 12)
	r.enqueue(p)
	r.run()
	info := r.state(p, asynq.TaskStateRetry, 15*time.Second)
	require.Contains(t, info.LastErr, string(tasks.StoreDown))
	require.Zero(t, info.Retried)
	require.Zero(t, r.sim.Bill().Upload(12).Started)
	mark, err := r.ledger.Adopt(t.Context(), idempotency.Mark{Ledger: "another", Seq: 40, Token: "x"}, idempotency.Action{By: "test", Why: "checked", At: time.Now()})
	require.NoError(t, err)
	require.NoError(t, r.rdb.HSet(t.Context(), "reprise:{ledger}:mark", "ledger", mark.Ledger, "seq", mark.Seq, "token", mark.Token).Err())
	_, err = redistest.AgeRetries(t.Context(), r.rdb, "upload", time.Hour)
	require.NoError(t, err)
	r.verdict(p, 15*time.Second)
	require.Equal(t, idempotency.Settled, r.ledgerState(p))
}

func verifying(o *worker.Options) { o.Verify, o.VerifyDelay = idempotency.VerifyRecognize, time.Second }

func TestVerifyByRecognitionSettlesAnUploadThatArrivedForOneUnit(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: -1, Rules: []auddsim.Rule{{Path: "upload", Fault: auddsim.FaultResetBeforeAnswer}}}, verifying)
	p := r.track("arrived.wav", 21)
	r.enqueue(p)
	r.run()
	require.True(t, eventually(40*time.Second, func() bool {
		s, err := r.store.TaskStatus(t.Context(), p.Key)
		return err == nil && s.Verdict == tasks.Done
	}), r.log.String())
	require.Equal(t, idempotency.Settled, r.ledgerState(p))
	b := r.sim.Bill()
	require.EqualValues(t, 1, b.Upload(21).Started)
	require.EqualValues(t, 1, b.ByPath["recognize"])
	require.Len(t, r.calls(p), 1)
	found, err := r.store.Tasks(t.Context(), store.TaskFilter{Path: tasks.Recognize})
	require.NoError(t, err)
	require.Len(t, found, 1, "the recognition is a task of its own")
	require.Equal(t, tasks.Match, found[0].Outcome)
	calls, err := r.store.Calls(t.Context(), store.CallFilter{Key: found[0].Key})
	require.NoError(t, err)
	require.Len(t, calls, 1)
	require.EqualValues(t, 1, calls[0].Units)
}

func TestVerifyByRecognitionLeavesAnUploadThatDidNotArriveToAnOperator(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: -1, Rules: []auddsim.Rule{{Path: "upload", Status: 503, Early: true}}}, verifying)
	p := r.track("absent.wav", 22)
	r.enqueue(p)
	r.run()
	require.True(t, eventually(40*time.Second, func() bool {
		trail, err := r.ledger.Trail(t.Context(), p.Key)
		return err == nil && len(trail) > 0
	}), r.log.String())
	require.Equal(t, idempotency.Uncertain, r.ledgerState(p))
	s := r.verdict(p, time.Second)
	require.Equal(t, tasks.Hold, s.Verdict)
}

// uncertain gives an upload a send whose worker died, and its verdict hold.
func (r *rig) uncertain(p tasks.Payload) idempotency.UploadStatus {
	r.t.Helper()
	ctx, at := r.t.Context(), time.Now().Add(-time.Hour)
	_, err := r.ledger.Latch(ctx, idempotency.LatchRequest{
		Key: p.Key, AttemptID: "sent", Source: "main", AudioID: *p.Params.AudioID, SHA256: p.Input.SHA256, Timeout: time.Minute, At: at,
		Verify: idempotency.VerifyRecognize,
	})
	require.NoError(r.t, err)
	st, err := r.ledger.Expire(ctx, p.Key, time.Now())
	require.NoError(r.t, err)
	require.Equal(r.t, idempotency.Uncertain, st.State)
	require.NoError(r.t, r.store.Settle(ctx, store.Settlement{
		Key: p.Key, Path: tasks.Upload, Queue: "upload", Finished: true, Verdict: tasks.Hold, Outcome: tasks.Crash, Reason: "crash: uncertain", At: at,
		Call: &store.Call{AttemptID: "sent", Key: p.Key, Source: "main", Path: tasks.Upload, Outcome: tasks.Crash, Verdict: tasks.Hold, At: at},
	}))
	return st
}

// A worker may die after the ledger has the answer and before the store has it.
func TestHeldUploadThatIsSettledInTheLedgerIsSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, verifying)
	p := r.track("between.wav", 23)
	ctx, st := t.Context(), r.uncertain(p)
	st, err := r.ledger.Verified(ctx, idempotency.Verification{Key: p.Key, Generation: st.Generation, Hit: p.Params.AudioID, At: time.Now()})
	require.NoError(t, err)
	require.Equal(t, idempotency.Settled, st.State)
	r.run()
	require.True(t, eventually(20*time.Second, func() bool {
		s, err := r.store.TaskStatus(ctx, p.Key)
		return err == nil && s.Verdict == tasks.Done
	}), r.log.String())
	require.Zero(t, r.sim.Bill().ByPath["recognize"]+r.sim.Bill().ByPath["upload"])
}

// The answer is paid for: it must reach the ledger although neither the ledger
// nor the store took it when it came.
func TestVerificationInTheOutboxSettlesTheUpload(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, nil)
	p := r.track("late-answer.wav", 24)
	ctx, st := t.Context(), r.uncertain(p)
	check, err := tasks.New(tasks.Recognize, p.Input, tasks.Params{Source: "main", Verifies: &tasks.Verification{Key: p.Key, Generation: st.Generation, Try: 1}}, 0)
	require.NoError(t, err)
	raw, err := json.Marshal(record.Entry{
		Settlement: store.Settlement{
			Key: check.Key, Path: tasks.Recognize, Queue: "recognize", Finished: true, Verdict: tasks.Done, Outcome: tasks.Match, Result: []byte("{}"), At: time.Now(),
			Call: &store.Call{AttemptID: "check", Key: check.Key, Source: "main", Path: tasks.Recognize, Outcome: tasks.Match, Verdict: tasks.Done, Units: 1, At: time.Now()},
		},
		Verified: &idempotency.Verification{Key: p.Key, Generation: st.Generation, Hit: p.Params.AudioID, At: time.Now()},
	})
	require.NoError(t, err)
	require.NoError(t, r.rdb.HSet(ctx, "reprise:{adm}:outbox", "check", raw).Err())
	r.run()
	require.True(t, eventually(20*time.Second, func() bool {
		s, err := r.store.TaskStatus(ctx, p.Key)
		return err == nil && s.Verdict == tasks.Done
	}), r.log.String())
	require.Equal(t, idempotency.Settled, r.ledgerState(p))
	require.Equal(t, tasks.Match, r.verdict(check, 5*time.Second).Outcome)
	require.Zero(t, r.sim.Bill().ByPath["recognize"]+r.sim.Bill().ByPath["upload"])
}

// Redis lost the outbox that held the report, and no task is left in the queue.
func TestOverdueSendWithoutAQueuedTaskIsHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, nil)
	p := r.track("overdue.wav", 21)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	at := time.Now().Add(-time.Hour)
	_, err = r.store.Register(t.Context(), []store.Submission{{ID: "s", Batch: "b", Key: p.Key, Path: p.Path, Queue: "upload", Payload: raw, At: at}})
	require.NoError(t, err)
	_, err = r.ledger.Latch(t.Context(), idempotency.LatchRequest{
		Key: p.Key, AttemptID: "dead", Source: "main", AudioID: 21, SHA256: p.Input.SHA256, Timeout: time.Minute, At: at,
	})
	require.NoError(t, err)
	r.run()
	require.Equal(t, tasks.Hold, r.verdict(p, time.Minute).Verdict)
	require.Equal(t, idempotency.Uncertain, r.ledgerState(p))
	require.Zero(t, r.sim.Bill().Upload(21).Started)
}

// A ledger that hangs must not hold the slot of a delivery.
func TestLookupOfALostAttemptEndsWhenTheLedgerHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, nil)
	db := r.store.DB()
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	require.Error(t, worker.MaySend(t.Context(), r.ledger, r.track("hangs.wav", 22)))
}
