package intake

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

func TestAnUploadIsQueuedOnceAndWhatIsSettledIsFree(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", 1)
	p := b.enqueue(one(7), a)
	require.Equal(t, []Status{Queued}, verdicts(p))
	require.Equal(t, int64(1), p.Counts().Units)
	require.Equal(t, []Status{AlreadyQueued}, verdicts(b.enqueue(one(7), a)))
	require.Equal(t, []Status{AlreadyQueued}, verdicts(b.enqueue(forcing(7), a)), "what waits needs no force")
	require.Equal(t, 1, b.queued().Pending)

	b.send(p.Items[0], idempotency.ToSettled, doneUpload)
	again := b.enqueue(one(7), a)
	require.Equal(t, []Status{AlreadyDone}, verdicts(again))
	require.Zero(t, again.Counts().Units)
	require.Zero(t, b.queued().Pending)
	b.now = b.now.Add(1000 * time.Hour)
	require.Equal(t, []Status{AlreadyDone}, verdicts(b.plan(one(7), a)), "age does not make it a new upload")
	var rows []Result
	require.NoError(t, b.Wait(t.Context(), again, func(r Result) { rows = append(rows, r) }))
	require.Len(t, rows, 1)
	require.Equal(t, tasks.Uploaded, rows[0].Outcome)
	require.True(t, rows[0].Cached)
}

func TestAnUploadedURLStaysSettled(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	p := b.enqueue(one(7), "https://h/a.wav?X-Amz-Signature=secret")
	b.send(p.Items[0], idempotency.ToSettled, doneUpload)
	b.now = b.now.Add(1000 * time.Hour)
	again := b.enqueue(one(7), "https://h/a.wav?X-Amz-Signature=other")
	require.Equal(t, []Status{AlreadyDone}, verdicts(again))
}

func TestAPlanOfUploadsChangesNothing(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a, c := b.file("a.wav", 1), b.file("c.wav", 2)
	p := b.plan(allotting(), a, c)
	require.Equal(t, []Status{ToQueue, ToQueue}, verdicts(p))
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

func TestACrashBetweenTheStepsIsMendedByTheNextRun(t *testing.T) {
	t.Parallel()
	// steps carries a plan out up to the one after which the process dies.
	claim := func(b *catalogBench, p *Plan) {
		kept, err := b.claim(b.t.Context(), p, []int{0, 1}, func() {})
		require.NoError(b.t, err)
		require.Len(b.t, kept, 2)
	}
	register := func(b *catalogBench, p *Plan) {
		claim(b, p)
		for i := range p.Items {
			sub, err := b.submission(p, i)
			require.NoError(b.t, err)
			_, err = b.store.Register(b.t.Context(), []store.Submission{sub})
			require.NoError(b.t, err)
		}
	}
	for name, steps := range map[string]func(b *catalogBench, p *Plan){
		"before anything": func(*catalogBench, *Plan) {},
		"after an allotment": func(b *catalogBench, p *Plan) {
			require.NoError(b.t, b.allot(b.t.Context(), p, []int{0, 1}))
		},
		"after the claim":        claim,
		"after the registration": register,
		"with half in the queue": func(b *catalogBench, p *Plan) {
			register(b, p)
			b.put(b.t.Context(), &p.Items[0], store.TaskStatus{Known: true}, p)
		},
		"after all": func(b *catalogBench, p *Plan) { require.NoError(b.t, b.Enqueue(b.t.Context(), p, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupUploads(t)
			a, c := b.file("a.wav", 1), b.file("c.wav", 2)
			first := b.plan(allotting(), a, c)
			steps(b, first)
			p := b.enqueue(allotting(), a, c)
			require.Subset(t, []Status{Queued, AlreadyQueued}, verdicts(p))
			if name != "before anything" && name != "after an allotment" {
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

func TestOtherContentIsRefusedAUsedSlotUnlessItReplaces(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a, c := b.file("a.wav", 1), b.file("c.wav", 2)
	first := b.enqueue(one(7), a)
	for _, p := range []*Plan{b.plan(one(7), c), b.enqueue(one(7), c)} {
		require.Equal(t, []Status{Refused}, verdicts(p))
		require.Contains(t, p.Items[0].Reason, "wants audio_id 7 of source main, which belongs to other content since "+since(b.now))
		require.Contains(t, p.Items[0].Reason, a+" ("+first.Items[0].Payload.Key+"); --replace overwrites it")
	}
	st, err := b.store.TaskStatus(t.Context(), b.plan(one(7), c).Items[0].Payload.Key)
	require.NoError(t, err)
	require.False(t, st.Known, "what is refused leaves no trace in the store")
	otherSource := one(7)
	otherSource.Params.Source = "spare"
	require.Equal(t, []Status{Queued}, verdicts(b.enqueue(otherSource, c)))

	b.drain(tasks.Archive)
	b.send(first.Items[0], idempotency.ToSettled, doneUpload)
	p := b.enqueue(replacing(7), c)
	require.Equal(t, []Status{Queued}, verdicts(p))
	require.Contains(t, p.Items[0].Warning, "overwrites audio_id 7 of source main, which belonged to other content since")
	b.send(p.Items[0], idempotency.ToSettled, doneUpload)

	require.Equal(t, []Status{Refused}, verdicts(b.enqueue(one(7), a)), "what was overwritten is not known any more")
	back := b.plan(replacing(7), a)
	require.Equal(t, []Status{ToQueue}, verdicts(back), "a dry run knows that it is billed again")
	require.NoError(t, b.Enqueue(t.Context(), back, nil))
	require.Equal(t, []Status{Queued}, verdicts(back))
	require.Equal(t, idempotency.Free, b.look(back.Items[0].Payload.Key).State)
	require.EqualValues(t, 1, b.look(back.Items[0].Payload.Key).Generation)
}

func TestReplacingIsMendedAfterACrash(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a, c := b.file("a.wav", 1), b.file("c.wav", 2)
	lost := b.enqueue(one(7), a)
	b.enqueue(replacing(7), c)
	b.settle(lost.Items[0], slotLost) // the worker found that a.wav lost its slot
	b.drain(tasks.Archive)
	p := b.plan(replacing(7), a)
	require.Equal(t, []Status{ToQueue}, verdicts(p))
	_, err := b.claim(t.Context(), p, []int{0}, func() {})
	require.NoError(t, err)
	// The process dies here.
	require.Equal(t, []Status{Queued}, verdicts(b.enqueue(replacing(7), a)))
}

func TestTheSameContentInTwoSlotsIsAllowedWithAWarning(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	b.file("a.wav", 1)
	b.file("twin.wav", 1)
	p := b.manifest("audio_id,file\n1,a.wav\n2,twin.wav\n")
	require.Equal(t, []Status{ToQueue, ToQueue}, verdicts(p))
	const want = "has the same content as audio_id 1: each is an upload of its own, and billed"
	require.Equal(t, want, p.Items[1].Warning, "also without changing anything")
	require.NoError(t, b.Enqueue(t.Context(), p, nil))
	require.Equal(t, []Status{Queued, Queued}, verdicts(p))
	require.Equal(t, []string{"", want}, []string{p.Items[0].Warning, p.Items[1].Warning})
	later := b.enqueue(one(3), filepath.Join(b.dir, "a.wav"))
	require.Equal(t, []Status{Queued}, verdicts(later))
	require.Equal(t, "has the same content as audio_id 1, 2: each is an upload of its own, and billed", later.Items[0].Warning)
}

func TestForceSendsOnceMoreAndIsAudited(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		effect  idempotency.Effect
		s       store.Settlement
		without Status
	}{"settled": {idempotency.ToSettled, doneUpload, AlreadyDone}, "rejected": {idempotency.ToRejected, rejectedUpload, Refused}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupUploads(t)
			a := b.file("a.wav", 1)
			b.send(b.enqueue(one(7), a).Items[0], end.effect, end.s)
			require.Equal(t, []Status{end.without}, verdicts(b.enqueue(one(7), a)))
			p := b.plan(forcing(7), a)
			require.Equal(t, 1, p.Counts().Resent)
			require.NoError(t, b.Enqueue(t.Context(), p, nil))
			require.Equal(t, []Status{Queued}, verdicts(p))
			key := p.Items[0].Payload.Key
			require.Equal(t, 1, b.queued().Pending)
			require.EqualValues(t, 1, b.look(key).Generation)
			require.Equal(t, idempotency.Free, b.look(key).State)
			trail, err := b.ledger.Trail(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, "ann", trail[len(trail)-1].Who)
			require.Equal(t, "forced by batch "+p.Batch, trail[len(trail)-1].Why)
			require.Equal(t, []Status{AlreadyQueued}, verdicts(b.enqueue(forcing(7), a)), "once")
		})
	}
}

func TestForceIsMendedAfterACrash(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", 1)
	p := b.enqueue(one(7), a)
	b.send(p.Items[0], idempotency.ToSettled, doneUpload)
	act := idempotency.Act{By: "ann", Why: "forced", At: b.now}
	_, err := b.ledger.Reopen(t.Context(), p.Items[0].Payload.Key, 0, act)
	require.NoError(t, err)
	// The process dies here.
	require.Equal(t, []Status{Queued}, verdicts(b.enqueue(one(7), a)))
	require.Equal(t, 1, b.queued().Pending)
}

func TestAnUncertainUploadIsAPersonsDecision(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", 1)
	p := b.enqueue(one(7), a)
	b.send(p.Items[0], idempotency.ToUncertain, heldUpload)
	key := p.Items[0].Payload.Key
	for _, req := range []Request{one(7), forcing(7), replacing(7)} {
		refused := b.enqueue(req, a)
		require.Equal(t, []Status{Refused}, verdicts(refused))
		require.Contains(t, refused.Items[0].Reason, "may have arrived")
		require.Contains(t, refused.Items[0].Reason, "`inspect uploads resolve "+key+"`")
	}
	// A person sends it again, and dies before the task is queued.
	b.now = b.now.Add(time.Hour)
	_, err := b.ledger.Resolve(t.Context(), key, idempotency.AsRetry, idempotency.Act{By: "ann", Why: "not there", At: b.now})
	require.NoError(t, err)
	require.Equal(t, []Status{Queued}, verdicts(b.enqueue(one(7), a)))
}

func TestAnUploadResolvedAsSettledIsEndedWithoutACall(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", 1)
	p := b.enqueue(one(7), a)
	b.send(p.Items[0], idempotency.ToUncertain, heldUpload)
	b.now = b.now.Add(time.Hour)
	_, err := b.ledger.Resolve(t.Context(), p.Items[0].Payload.Key, idempotency.AsSettled, idempotency.Act{By: "ann", Why: "seen", At: b.now})
	require.NoError(t, err)
	p = b.enqueue(one(7), a)
	require.Equal(t, []Status{Queued}, verdicts(p), "the worker ends it by the ledger")
	require.Zero(t, p.Counts().Units)
	require.Equal(t, idempotency.Settled, b.look(p.Items[0].Payload.Key).State)
}

func TestWhatWasSentGoesBackIntoALostQueueForItsEnd(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", 1)
	p := b.enqueue(one(7), a)
	b.latch(p.Items[0])
	require.Equal(t, []Status{AlreadyQueued}, verdicts(b.enqueue(forcing(7), a)))
	require.NoError(t, b.rdb.FlushDB(t.Context()).Err())
	p = b.enqueue(forcing(7), a)
	require.Equal(t, []Status{Queued}, verdicts(p))
	require.Zero(t, p.Counts().Units)
	require.EqualValues(t, 0, b.look(p.Items[0].Payload.Key).Generation)
}

func TestUploadsAreCheckedLikeOtherInputsButMayBeLarge(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	put(t, b.dir, "text.wav", []byte("once upon a time, there was no audio"))
	put(t, b.dir, "large.wav", wav(MaxRecognizeBytes/8000+1, 3))
	p := b.manifest(`audio_id,file,source,external_id,meta.a
1,missing.wav,,,
2,text.wav,,,
3,large.wav,,ext-3,b
3,large.wav,,,
3,large.wav,spare,,
,large.wav,,,
`)
	require.Equal(t, []Status{Refused, Refused, ToQueue, Refused, ToQueue, Refused}, verdicts(p))
	for i, want := range map[int]string{
		0: "does not exist", 1: "is neither audio nor video: its content is text/plain",
		3: "has the audio_id 3 of songs row 3 (line 4): one slot holds one upload", 5: "has no audio_id: give it one, or let --next-id allot one",
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
	require.Contains(t, folder.Items[0].Reason, "one audio_id takes one")
	_, err = b.Plan(t.Context(), Request{Path: tasks.Upload, Force: true}, nil, nil)
	require.ErrorContains(t, err, "needs who asks for it")
	recognize, err := b.PlanManifest(t.Context(), Request{Path: tasks.Recognize}, manifest(t, "audio_id,file\n1,a.wav\n"), nil)
	require.NoError(t, err)
	require.Equal(t, "has an audio_id or a source, which only uploads take", recognize.Items[0].Reason)
}
