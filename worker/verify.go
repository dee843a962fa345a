package worker

import (
	"context"
	"fmt"
	"io"
	"time"

	"reprise/admission"
	"reprise/audd"
	"reprise/idempotency"
	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// Verifying (spec R30, `verify: recognize`): one recognition of an uncertain
// upload's audio, after AudD had time to index it. A hit with the same audio_id
// settles the upload; anything else leaves it to a person.

// verifyEvery is how often uncertain uploads are looked for; verifyTries bounds
// the units one of them may cost.
const (
	verifyEvery = 5 * time.Second
	verifyTries = 3
)

// verifyBytes is the most of a track that is sent to be recognised: AudD takes
// 10 MiB and analyses only the first 12 s.
const verifyBytes = 10<<20 - 64<<10

// verifyUploads runs until ctx ends, when uploads are verified at all.
func (w *Worker) verifyUploads(ctx context.Context) {
	if w.uploads.ledger == nil || w.uploads.verify != idempotency.VerifyRecognize {
		return
	}
	tick := time.NewTicker(verifyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		found, err := w.uploads.ledger.List(ctx, idempotency.Filter{
			States: []idempotency.State{idempotency.Uncertain}, Verify: idempotency.VerifyRecognize,
		})
		if err != nil {
			w.warn.do("verify", "uncertain uploads cannot be listed", err)
			continue
		}
		for _, e := range found {
			if e.Send.Tries >= verifyTries || w.isStopping() {
				continue
			}
			if err := w.verify(ctx, e); err != nil {
				w.warn.do("verify", "an uncertain upload could not be verified", err)
			}
		}
	}
}

// verify spends one unit on one upload, if it is due and nobody else does.
func (w *Worker) verify(ctx context.Context, e idempotency.Entry) error {
	client := w.clients[e.Source]
	if client == nil || w.now().Before(e.Send.EndedAt.Add(w.opts.VerifyDelay)) {
		return nil
	}
	raw, err := w.records.Payload(ctx, e.Key)
	if err != nil {
		return err
	}
	payload, err := tasks.Decode(tasks.Upload.Type(), raw)
	if err != nil {
		return err
	}
	permit, err := w.gates.Acquire(ctx, admission.Request{
		Key: "verify_" + e.Key, AttemptID: newAttemptID(), Path: tasks.Recognize, Generation: int64(e.Send.Tries), Units: 1, UnitsBounded: true, Pinned: e.Source,
	})
	if err != nil {
		return fmt.Errorf("admit the recognition: %w", err)
	}
	mine, err := w.uploads.ledger.BeginVerify(ctx, idempotency.Turn{
		Key: e.Key, Generation: e.Generation, Delay: w.opts.VerifyDelay, Tries: verifyTries, At: w.now(),
	})
	if err != nil || !mine {
		w.gates.release(permit, admission.Settlement{Outcome: tasks.Interrupted, ClearRecord: true})
		return err
	}
	return w.recognizeUpload(ctx, client, verification{entry: e, payload: payload, permit: permit})
}

// verification is one recognition of an upload's audio.
type verification struct {
	entry   idempotency.Entry
	payload tasks.Payload
	permit  *admission.Permit
}

func (w *Worker) recognizeUpload(ctx context.Context, client *audd.Client, v verification) error {
	in := &input{spec: v.payload.Input}
	defer in.close()
	audio := audd.Audio{URL: v.payload.Input.URL, Name: in.name()}
	if v.payload.Input.Kind != tasks.URLInput {
		audio.Open = in.openStart
	}
	start := w.now()
	got, err := client.Recognize(ctx, audd.RecognizeRequest{Audio: audio, BeforeBody: func(context.Context) error { return v.permit.Valid() }})
	class := retrypolicy.Classify(retrypolicy.Attempt{Path: tasks.Recognize, Match: got.Song != nil, Err: err, InputKind: v.payload.Input.Kind})
	decision := w.policy.Decide(tasks.Recognize, class, retrypolicy.Record{}, w.random())
	units := int64(0)
	if decision.UnitsKept {
		units = 1
	}
	w.gates.release(v.permit, admission.Settlement{
		Outcome: class.Outcome, Channel: string(decision.Channel), Halt: string(decision.Halt), Probeable: class.Probeable, Shut: decision.Shut,
		UnitsUsed: units, Latency: w.now().Sub(start), ClearRecord: true,
	})
	row := store.Call{
		AttemptID: v.permit.AttemptID, Key: v.entry.Key, Source: v.entry.Source, Path: tasks.Recognize, Outcome: class.Outcome, Verdict: decision.Verdict,
		Code: class.Code, HTTPStatus: class.HTTPStatus, RequestID: got.Meta.RequestID, Phase: string(class.Phase), Latency: w.now().Sub(start),
		Units: units, UnitBasis: "estimated", PossiblyBilled: decision.PossiblyBilled, Reason: "verify: " + class.Reason, At: start,
	}
	w.price(&row)
	standing, serr := w.records.Standing(ctx, v.entry.Key)
	if serr != nil {
		return serr
	}
	row.Generation = standing.Generation
	note := store.Settlement{Key: v.entry.Key, Generation: standing.Generation, Path: tasks.Upload, Call: &row, At: w.now()}
	if err := w.outbox.write(ctx, entry{Settlement: note}); err != nil {
		return err
	}
	if err != nil {
		return nil // no answer: the call row tells; the next try comes after the delay
	}
	return w.concludeVerify(ctx, v, got, standing.Generation)
}

// concludeVerify tells the ledger what was found and, when that settles the
// upload, the store.
func (w *Worker) concludeVerify(ctx context.Context, v verification, got audd.Recognition, generation int64) error {
	found := idempotency.Verification{Key: v.entry.Key, Generation: v.entry.Generation, RequestID: got.Meta.RequestID, At: w.now()}
	if got.Song != nil {
		found.Hit = got.Song.AudioID
	}
	st, err := w.uploads.ledger.Verified(ctx, found)
	if err != nil {
		return err
	}
	w.log.Info("uncertain upload verified by recognition", "task_id", v.entry.Key, "found", st.State == idempotency.Settled)
	if st.State != idempotency.Settled {
		return nil
	}
	return w.records.Settle(ctx, store.Settlement{
		Key: v.entry.Key, Generation: generation, Path: tasks.Upload, AttemptID: v.entry.Send.AttemptID, Finished: true,
		Verdict: tasks.Done, Outcome: tasks.Uploaded, Reason: "uploaded: verified by recognition", Result: []byte("null"), At: w.now(),
	})
}

// openStart opens the part of the audio that AudD listens to.
func (in *input) openStart() (io.ReadCloser, int64, error) {
	if _, _, err := in.open(); err != nil {
		return nil, 0, err
	}
	n := min(in.spec.Size, verifyBytes)
	return io.NopCloser(io.NewSectionReader(in.file, 0, n)), n, nil
}
