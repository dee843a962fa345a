package worker

import (
	"context"
	"errors"
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

// healEvery is how often held uploads are compared with the ledger.
const healEvery = time.Minute

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
	var healed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if w.now().After(healed.Add(healEvery)) {
			healed = w.now()
			if err := w.healHolds(ctx); err != nil {
				w.warn.do("verify", "held uploads could not be compared with the ledger", err)
			}
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
	standing, err := w.records.TaskStatus(ctx, e.Key)
	if err != nil {
		return err
	}
	permit, err := w.gates.Acquire(ctx, admission.Request{
		Key: "verify_" + e.Key, AttemptID: newAttemptID(), Path: tasks.Recognize, Generation: int64(e.Send.Tries), Units: 1, UnitsBounded: true, Pinned: e.Source,
	})
	if err != nil {
		return fmt.Errorf("admit the recognition: %w", err)
	}
	mine, err := w.uploads.ledger.BeginVerify(ctx, idempotency.VerifyRequest{
		Key: e.Key, Generation: e.Generation, Delay: w.opts.VerifyDelay, Tries: verifyTries, At: w.now(),
	})
	if err != nil || !mine {
		w.gates.release(permit, admission.CallReport{Outcome: tasks.Interrupted, ClearRecord: true})
		return err
	}
	return w.recognizeUpload(ctx, client, verification{
		entry: e, permit: permit, d: &delivery{queue: payload.Path.Queue(""), payload: payload, standing: standing},
	})
}

// verification is one recognition of an upload's audio.
type verification struct {
	entry  idempotency.Entry
	permit *admission.Permit // of the recognition
	d      *delivery         // of the upload, as far as a settlement needs one
}

// recognizeUpload makes the call. As in a delivery, once it is on its way only
// its own timeout or the hard stop ends it, and what it cost is kept before the
// permit is given back.
func (w *Worker) recognizeUpload(ctx context.Context, client *audd.Client, v verification) error {
	in := &input{spec: v.d.payload.Input}
	defer in.close()
	audio := audd.Audio{URL: v.d.payload.Input.URL, Name: in.name()}
	if v.d.payload.Input.Kind != tasks.URLInput {
		audio.Open = in.openStart
	}
	start := w.now()
	got, err := client.Recognize(w.halted, audd.RecognizeRequest{Audio: audio, BeforeBody: func(context.Context) error { return v.permit.Valid() }})
	took := w.now().Sub(start)
	class := retrypolicy.Classify(retrypolicy.CallResult{Path: tasks.Recognize, Match: got.Song != nil, Err: err, InputKind: v.d.payload.Input.Kind})
	decision := w.policy.Decide(tasks.Recognize, class, tasks.AttemptRecord{}, w.random())
	units := int64(0)
	if decision.UnitsKept {
		units = 1
	}
	row := store.Call{
		AttemptID: v.permit.AttemptID, Key: v.entry.Key, Generation: v.d.standing.Generation, Source: v.entry.Source, Path: tasks.Recognize,
		Outcome: class.Outcome, Verdict: decision.Verdict,
		Code: class.Code, HTTPStatus: class.HTTPStatus, RequestID: got.Meta.RequestID, Phase: string(class.Phase), Latency: took,
		Units: units, UnitBasis: "estimated", PossiblyBilled: decision.PossiblyBilled, Reason: "verify: " + class.Reason, At: start,
	}
	w.price(&row)
	note := store.Settlement{Key: v.entry.Key, Generation: row.Generation, Path: tasks.Upload, Call: &row, At: w.now()}
	if ans := w.keep(ctx, v.d, entry{Settlement: note}); ans != nil {
		return ans
	}
	w.gates.release(v.permit, admission.CallReport{
		Outcome: class.Outcome, Channel: decision.Channel, Halt: string(decision.Halt), Probeable: class.Probeable, RetryAfter: decision.BlockFor,
		UnitsUsed: units, Latency: took, ClearRecord: true,
	})
	if err != nil {
		return nil // no answer: the call row tells; the next try comes after the delay
	}
	return w.concludeVerify(ctx, v, got)
}

// concludeVerify tells the ledger what was found and, when that settles the
// upload, the store. The answer is paid for: a ledger that is down is asked
// again until the worker stops.
func (w *Worker) concludeVerify(ctx context.Context, v verification, got audd.Recognition) error {
	found := idempotency.Verification{Key: v.entry.Key, Generation: v.entry.Generation, RequestID: got.Meta.RequestID, At: w.now()}
	if got.Song != nil {
		found.Hit = got.Song.AudioID
	}
	st, err := w.tellVerified(ctx, found)
	if err != nil {
		return err
	}
	w.log.Info("uncertain upload verified by recognition", "task_id", v.entry.Key, "found", st.State == idempotency.Settled)
	if st.State != idempotency.Settled {
		return nil
	}
	if ans := w.keep(ctx, v.d, entry{Settlement: w.verifiedSettlement(v.entry.Key, v.d.standing.Generation, st.Send.AttemptID)}); ans != nil {
		return ans
	}
	return nil
}

func (w *Worker) tellVerified(ctx context.Context, found idempotency.Verification) (idempotency.UploadStatus, error) {
	tick := time.NewTicker(verifyEvery)
	defer tick.Stop()
	for {
		st, err := w.uploads.ledger.Verified(ctx, found)
		if err == nil || errors.Is(err, idempotency.ErrInvalid) {
			return st, err
		}
		w.warn.do("verify", "the ledger does not take what a recognition found; trying on", err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return st, err
		}
	}
}

// verifiedSettlement ends a held upload whose audio was found at AudD.
func (w *Worker) verifiedSettlement(key string, generation int64, attempt string) store.Settlement {
	return store.Settlement{
		Key: key, Generation: generation, Path: tasks.Upload, AttemptID: attempt, Finished: true,
		Verdict: tasks.Done, Outcome: tasks.Uploaded, Reason: "uploaded: verified by recognition", Result: []byte("null"), At: w.now(),
	}
}

// healHolds settles uploads that are still held though the ledger has them as
// arrived: their worker died, or lost the store, between the two.
func (w *Worker) healHolds(ctx context.Context) error {
	page := store.TaskFilter{Path: tasks.Upload, Verdict: tasks.Hold, Limit: healPage}
	for {
		rows, err := w.records.Tasks(ctx, page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			st, err := w.uploads.ledger.Status(ctx, row.Key)
			if err != nil {
				return err
			}
			if st.State != idempotency.Settled {
				continue
			}
			if err := w.records.Settle(ctx, w.verifiedSettlement(row.Key, row.Generation, st.Send.AttemptID)); err != nil {
				return err
			}
			w.log.Info("a held upload is settled: the ledger knows that it arrived", "task_id", row.Key)
		}
		if len(rows) < healPage || ctx.Err() != nil {
			return ctx.Err()
		}
		last := rows[len(rows)-1]
		page.AfterAt, page.AfterKey = last.UpdatedAt, last.Key
	}
}

// healPage is how many held uploads are read at a time.
const healPage = 500

// openStart opens the part of the audio that AudD listens to.
func (in *input) openStart() (io.ReadCloser, int64, error) {
	if _, _, err := in.open(); err != nil {
		return nil, 0, err
	}
	n := min(in.spec.Size, verifyBytes)
	return io.NopCloser(io.NewSectionReader(in.file, 0, n)), n, nil
}
