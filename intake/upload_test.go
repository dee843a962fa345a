package intake

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/testaudio"
	"reprise/store"
	"reprise/tasks"
)

func TestUploadIsQueuedOnceAndASettledUploadIsFree(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", "1")
	p := b.enqueue(one(7), a)
	require.Equal(t, []Status{Queued}, statuses(p))
	require.Equal(t, int64(1), p.Counts().Units)
	require.Equal(t, []Status{AlreadyQueued}, statuses(b.enqueue(one(7), a)))
	require.Equal(t, []Status{AlreadyQueued}, statuses(b.enqueue(forcing(7), a)), "a queued task needs no force")
	require.Equal(t, 1, b.queued().Pending)

	b.send(p.Items[0], tasks.LatchSettled, doneUpload)
	again := b.enqueue(one(7), a)
	require.Equal(t, []Status{AlreadyDone}, statuses(again))
	require.Zero(t, again.Counts().Units)
	require.Zero(t, b.queued().Pending)
	b.now = b.now.Add(1000 * time.Hour)
	require.Equal(t, []Status{AlreadyDone}, statuses(b.plan(one(7), a)), "age does not make it a new upload")
	var rows []Result
	require.NoError(t, b.Wait(t.Context(), again, func(r Result) { rows = append(rows, r) }))
	require.Len(t, rows, 1)
	require.Equal(t, tasks.Uploaded, rows[0].Outcome)
	require.True(t, rows[0].Cached)
}

func TestUploadedURLStaysSettledDespiteItsAge(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	p := b.enqueue(one(7), "https://h/a.wav?X-Amz-Signature=secret")
	b.send(p.Items[0], tasks.LatchSettled, doneUpload)
	b.now = b.now.Add(1000 * time.Hour)
	again := b.enqueue(one(7), "https://h/a.wav?X-Amz-Signature=other")
	require.Equal(t, []Status{AlreadyDone}, statuses(again))
}

func TestPlanOfUploadsWritesNothing(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a, c := b.file("a.wav", "1"), b.file("c.wav", "2")
	p := b.plan(assigning(), a, c)
	require.Equal(t, []Status{ToQueue, ToQueue}, statuses(p))
	require.Equal(t, int64(2), p.Counts().Units)
	b.plan(replacing(7), a)
	found, err := b.ledger.List(t.Context(), idempotency.Filter{})
	require.NoError(t, err)
	require.Empty(t, found)
	next, err := b.ledger.NextID(t.Context(), "main", 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, next)
	require.Zero(t, b.queued().Total())
}

func TestNextRunContinuesAfterACrashAtAnyStep(t *testing.T) {
	t.Parallel()
	// Each case runs the steps of Enqueue up to the one after which the process dies.
	claim := func(b *uploadRig, p *Plan) {
		kept, err := b.claim(b.t.Context(), p, []int{0, 1}, func() {})
		require.NoError(b.t, err)
		require.Len(b.t, kept, 2)
	}
	register := func(b *uploadRig, p *Plan) {
		claim(b, p)
		for i := range p.Items {
			sub, err := b.submission(p, i)
			require.NoError(b.t, err)
			_, err = b.store.Register(b.t.Context(), []store.Submission{sub})
			require.NoError(b.t, err)
		}
	}
	for name, steps := range map[string]func(b *uploadRig, p *Plan){
		"before anything": func(*uploadRig, *Plan) {},
		"after the assignment": func(b *uploadRig, p *Plan) {
			require.NoError(b.t, b.assignIDs(b.t.Context(), p, []int{0, 1}))
		},
		"after the claim":        claim,
		"after the registration": register,
		"with half in the queue": func(b *uploadRig, p *Plan) {
			register(b, p)
			b.put(b.t.Context(), &p.Items[0], store.TaskStatus{Known: true}, p)
		},
		"after all": func(b *uploadRig, p *Plan) { require.NoError(b.t, b.Enqueue(b.t.Context(), p, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupUploads(t)
			a, c := b.file("a.wav", "1"), b.file("c.wav", "2")
			first := b.plan(assigning(), a, c)
			steps(b, first)
			p := b.enqueue(assigning(), a, c)
			require.Subset(t, []Status{Queued, AlreadyQueued}, statuses(p))
			if name != "before anything" && name != "after the assignment" {
				require.Equal(t, b.ids(first), b.ids(p), "the same ids")
			}
			require.Equal(t, 2, b.queued().Pending)
			found, err := b.ledger.List(t.Context(), idempotency.Filter{})
			require.NoError(t, err)
			require.Len(t, found, 2)
			unfinished, err := b.store.BatchProgress(t.Context(), p.Batch)
			require.NoError(t, err)
			require.EqualValues(t, 2, unfinished.Waiting)
		})
	}
}

func TestUsedSlotRefusesOtherContentWithoutReplace(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a, c := b.file("a.wav", "1"), b.file("c.wav", "2")
	first := b.enqueue(one(7), a)
	for _, p := range []*Plan{b.plan(one(7), c), b.enqueue(one(7), c)} {
		require.Equal(t, []Status{Refused}, statuses(p))
		require.Contains(t, p.Items[0].Reason, "cannot use audio_id 7 of source main, which has belonged to other content since "+timestamp(b.now))
		require.Contains(t, p.Items[0].Reason, a+" ("+first.Items[0].Payload.Key+"); --replace overwrites it")
	}
	st, err := b.store.TaskStatus(t.Context(), b.plan(one(7), c).Items[0].Payload.Key)
	require.NoError(t, err)
	require.False(t, st.Known, "a refused upload leaves no trace in the store")
	otherSource := one(7)
	otherSource.Params.Source = "spare"
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(otherSource, c)))

	b.drain(tasks.Archive)
	b.send(first.Items[0], tasks.LatchSettled, doneUpload)
	p := b.enqueue(replacing(7), c)
	require.Equal(t, []Status{Queued}, statuses(p))
	require.Contains(t, p.Items[0].Warning, "overwrites audio_id 7 of source main, which belonged to other content since")
	b.send(p.Items[0], tasks.LatchSettled, doneUpload)

	require.Equal(t, []Status{Refused}, statuses(b.enqueue(one(7), a)), "the slot belongs to other content now")
	back := b.plan(replacing(7), a)
	require.Equal(t, []Status{ToQueue}, statuses(back), "a dry run reports that it is billed again")
	require.NoError(t, b.Enqueue(t.Context(), back, nil))
	require.Equal(t, []Status{Queued}, statuses(back))
	require.Equal(t, idempotency.Free, b.look(back.Items[0].Payload.Key).State)
	require.EqualValues(t, 1, b.look(back.Items[0].Payload.Key).Generation)
}

func TestNextRunCompletesAnInterruptedReplacement(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a, c := b.file("a.wav", "1"), b.file("c.wav", "2")
	lost := b.enqueue(one(7), a)
	b.enqueue(replacing(7), c)
	b.settle(lost.Items[0], slotLost) // the worker found that a.wav lost its slot
	b.drain(tasks.Archive)
	p := b.plan(replacing(7), a)
	require.Equal(t, []Status{ToQueue}, statuses(p))
	_, err := b.claim(t.Context(), p, []int{0}, func() {})
	require.NoError(t, err)
	// The process dies here.
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(replacing(7), a)))
}

func TestSameContentInTwoSlotsIsAllowedWithAWarning(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	b.file("a.wav", "1")
	b.file("twin.wav", "1")
	p := b.manifest("audio_id,file\n1,a.wav\n2,twin.wav\n")
	require.Equal(t, []Status{ToQueue, ToQueue}, statuses(p))
	const want = "has the same content as audio_id 1: each upload is billed"
	require.Equal(t, want, p.Items[1].Warning, "a plan warns already")
	require.NoError(t, b.Enqueue(t.Context(), p, nil))
	require.Equal(t, []Status{Queued, Queued}, statuses(p))
	require.Equal(t, []string{"", want}, []string{p.Items[0].Warning, p.Items[1].Warning})
	later := b.enqueue(one(3), filepath.Join(b.dir, "a.wav"))
	require.Equal(t, []Status{Queued}, statuses(later))
	require.Equal(t, "has the same content as audio_id 1, 2: each upload is billed", later.Items[0].Warning)
}

func TestForceSendsAnUploadAgainAndIsRecorded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		effect  tasks.LatchEffect
		s       store.Settlement
		without Status
	}{"settled": {tasks.LatchSettled, doneUpload, AlreadyDone}, "rejected": {tasks.LatchRejected, rejectedUpload, Refused}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupUploads(t)
			a := b.file("a.wav", "1")
			b.send(b.enqueue(one(7), a).Items[0], end.effect, end.s)
			require.Equal(t, []Status{end.without}, statuses(b.enqueue(one(7), a)))
			p := b.plan(forcing(7), a)
			require.Equal(t, 1, p.Counts().Resent)
			require.NoError(t, b.Enqueue(t.Context(), p, nil))
			require.Equal(t, []Status{Queued}, statuses(p))
			key := p.Items[0].Payload.Key
			require.Equal(t, 1, b.queued().Pending)
			require.EqualValues(t, 1, b.look(key).Generation)
			require.Equal(t, idempotency.Free, b.look(key).State)
			trail, err := b.ledger.Trail(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, "ann", trail[len(trail)-1].Who)
			require.Equal(t, "forced by batch "+p.Batch, trail[len(trail)-1].Why)
			require.Equal(t, []Status{AlreadyQueued}, statuses(b.enqueue(forcing(7), a)), "once")
		})
	}
}

func TestNextRunCompletesAnInterruptedForce(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", "1")
	p := b.enqueue(one(7), a)
	b.send(p.Items[0], tasks.LatchSettled, doneUpload)
	act := idempotency.Action{By: "ann", Why: "forced", At: b.now}
	_, err := b.ledger.Reopen(t.Context(), p.Items[0].Payload.Key, 0, act)
	require.NoError(t, err)
	// The process dies here.
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(one(7), a)))
	require.Equal(t, 1, b.queued().Pending)
}

func TestUncertainUploadIsLeftToTheOperator(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", "1")
	p := b.enqueue(one(7), a)
	b.send(p.Items[0], tasks.LatchUncertain, heldUpload)
	key := p.Items[0].Payload.Key
	for _, req := range []Request{one(7), forcing(7), replacing(7)} {
		refused := b.enqueue(req, a)
		require.Equal(t, []Status{Refused}, statuses(refused))
		require.Contains(t, refused.Items[0].Reason, "may have reached AudD")
		require.Contains(t, refused.Items[0].Reason, "`inspect uploads resolve "+key+"`")
	}
	// An operator resolves it for another send, and the process dies before the task is queued.
	b.now = b.now.Add(time.Hour)
	_, err := b.ledger.Resolve(t.Context(), key, idempotency.AsRetry, idempotency.Action{By: "ann", Why: "not there", At: b.now})
	require.NoError(t, err)
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(one(7), a)))
}

func TestUploadResolvedAsSettledIsQueuedToEndWithoutACall(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", "1")
	p := b.enqueue(one(7), a)
	b.send(p.Items[0], tasks.LatchUncertain, heldUpload)
	b.now = b.now.Add(time.Hour)
	_, err := b.ledger.Resolve(t.Context(), p.Items[0].Payload.Key, idempotency.AsSettled, idempotency.Action{By: "ann", Why: "seen", At: b.now})
	require.NoError(t, err)
	p = b.enqueue(one(7), a)
	require.Equal(t, []Status{Queued}, statuses(p), "the worker ends it from the ledger")
	require.Zero(t, p.Counts().Units)
	require.Equal(t, idempotency.Settled, b.look(p.Items[0].Payload.Key).State)
}

func TestSentUploadIsQueuedAgainAfterRedisLostItsData(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", "1")
	p := b.enqueue(one(7), a)
	b.latch(p.Items[0])
	require.Equal(t, []Status{AlreadyQueued}, statuses(b.enqueue(forcing(7), a)))
	require.NoError(t, b.rdb.FlushDB(t.Context()).Err())
	p = b.enqueue(forcing(7), a)
	require.Equal(t, []Status{Queued}, statuses(p))
	require.Zero(t, p.Counts().Units)
	require.EqualValues(t, 0, b.look(p.Items[0].Payload.Key).Generation)
}

func TestUploadsAreCheckedLikeOtherInputsButHaveNoSizeLimit(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	put(t, b.dir, "text.wav", []byte("plain text instead of audio"))
	put(t, b.dir, "large.wav", testaudio.WAV((MaxRecognizeBytes/8000+1)*time.Second, "3"))
	p := b.manifest(`audio_id,file,source,external_id,meta.a
1,missing.wav,,,
2,text.wav,,,
3,large.wav,,ext-3,b
3,large.wav,,,
3,large.wav,spare,,
,large.wav,,,
`)
	require.Equal(t, []Status{Refused, Refused, ToQueue, Refused, ToQueue, Refused}, statuses(p))
	for i, want := range map[int]string{
		0: "does not exist", 1: "is neither audio nor video: its content is text/plain",
		3: "has the same audio_id as songs row 3 (line 4): a slot holds one upload", 5: "has no audio_id: set one, or use --next-id",
	} {
		require.Equal(t, want, p.Items[i].Reason)
	}
	require.NoError(t, b.Enqueue(t.Context(), p, nil))
	rows, err := b.store.Submissions(t.Context(), store.SubmissionFilter{ExternalID: "ext-3"})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.JSONEq(t, `{"a":"b"}`, string(rows[0].Submission.Metadata))
	info, err := asynq.NewInspectorFromRedisClient(b.rdb).GetTaskInfo("upload", p.Items[4].Payload.Key)
	require.NoError(t, err)
	payload, err := tasks.Decode(info.Type, info.Payload)
	require.NoError(t, err)
	require.Equal(t, "spare", payload.Params.Source)
	require.EqualValues(t, 3, *payload.Params.AudioID)

	folder := b.plan(one(1), b.dir)
	require.Equal(t, Refused, folder.Items[0].Status)
	require.Contains(t, folder.Items[0].Reason, "--audio-id is for one input")
	_, err = b.Plan(t.Context(), Request{Path: tasks.Upload, Force: true}, nil, nil)
	require.ErrorContains(t, err, "need By, the name of the user")
	recognize, err := b.PlanManifest(t.Context(), Request{Path: tasks.Recognize}, manifest(t, "audio_id,file\n1,a.wav\n"), nil)
	require.NoError(t, err)
	require.Equal(t, "has an audio_id or a source, which are only for uploads: remove them", recognize.Items[0].Reason)
}
