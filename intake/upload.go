package intake

import (
	"errors"
	"fmt"
	"time"

	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

// view is what the ledger says of an upload's key.
type view struct {
	known      bool
	generation int64
	state      idempotency.State // "" as Free
	reason     string            // of its send
}

// checkUpload finds what no input could make right.
func (in *Intake) checkUpload(req Request) error {
	var errs []error
	if in.opts.Ledger == nil {
		errs = append(errs, errors.New("uploads need the ledger"))
	}
	if (req.Force || req.Replace) && req.By == "" {
		errs = append(errs, errors.New("replacing and forcing uploads needs who asks for it"))
	}
	if req.NextID && req.Params.AudioID != nil {
		errs = append(errs, errors.New("an audio_id is either given or allotted"))
	}
	return errors.Join(errs...)
}

// number gives each upload its account and its audio_id, and refuses what has
// none, or one that another input has. Other paths have neither.
func number(req Request, inputs []found) {
	type slot struct {
		source string
		id     int64
	}
	taken := map[slot]*found{}
	for i := range inputs {
		input := &inputs[i]
		switch {
		case input.refusal != "":
			continue
		case req.Path != tasks.Upload:
			if input.audioID != nil || input.source != "" {
				input.refusal = "has an audio_id or a source, which only uploads take"
			}
			continue
		}
		if req.Params.AudioID != nil && len(inputs) > 1 {
			input.refusal = fmt.Sprintf("is one of %d inputs: one audio_id takes one", len(inputs))
			continue
		}
		if input.source == "" {
			input.source = cleanSource(req.Params.Source)
		}
		if input.audioID == nil {
			input.audioID = req.Params.AudioID
		}
		if input.audioID == nil {
			switch {
			case !req.NextID:
				input.refusal = "has no audio_id: give it one, or let --next-id allot one"
			case input.url != "":
				input.refusal = "is a URL, whose content nobody knows again: give it an audio_id, --next-id is for files"
			}
			continue
		}
		at := slot{input.source, *input.audioID}
		if other := taken[at]; other != nil {
			input.refusal = fmt.Sprintf("has the audio_id %d of %s: one slot holds one upload", at.id, other.label())
			continue
		}
		taken[at] = input
	}
}

// label names an input in a sentence about another one.
func (f *found) label() string {
	if at := f.at.String(); at != "" {
		return at
	}
	return f.name
}

// buildUpload makes the payload. Without an audio_id it has no key yet.
func (it *Item) buildUpload(input found, audio tasks.Input) error {
	it.Units = 1
	it.Payload = tasks.Payload{Path: tasks.Upload, Input: audio, Params: tasks.Params{Source: input.source}}
	if input.audioID != nil {
		return it.setID(*input.audioID)
	}
	it.upload.allot = true
	whole := *it
	if err := whole.setID(0); err != nil {
		return err
	}
	return nil
}

// setID completes the payload.
func (it *Item) setID(id int64) error {
	params := it.Payload.Params
	params.AudioID = &id
	p, _, err := build(Request{Path: tasks.Upload, Params: params}, it.Payload.Input)
	if err == nil {
		it.Payload = p
	}
	return err
}

func (it *Item) slot() slotRef { return slotRef{it.Payload.Params.Source, *it.Payload.Params.AudioID} }

func (it *Item) refuse(format string, args ...any) {
	it.Status, it.Reason, it.Units, it.reopen, it.upload.resend = Refused, fmt.Sprintf(format, args...), 0, false, false
}

// judgeUpload turns where an upload stands into a verdict. The ledger says
// whether it was sent, the store whether its task has ended: what was sent is
// never sent again by itself, and a task that the store has not ended is
// queued, for the worker to end it by what the ledger says, without a call.
func judgeUpload(it *Item, st store.TaskStatus, req Request) {
	v := it.upload.ledger
	it.Units, it.reopen, it.upload.resend = 1, false, false
	done := st.Finished && st.Verdict == tasks.Done
	again := req.Force && st.Finished
	switch v.state {
	case idempotency.Uncertain:
		it.refuse("may have arrived, and is not sent again by itself%s: decide with `inspect uploads resolve %s`",
			because(v.reason), it.Payload.Key)
	case idempotency.Sent:
		it.Units = 0
		if done {
			known(it, st)
		}
	case idempotency.Settled:
		switch {
		case again:
			it.reopen, it.upload.resend = true, true
		case done:
			known(it, st)
		default:
			it.Units, it.reopen = 0, true
		}
	case idempotency.Rejected:
		switch {
		case again:
			it.reopen, it.upload.resend = true, true
		case st.Finished:
			it.refuse("was rejected by AudD before%s: --force sends it again, which may be billed", because(v.reason))
		default:
			it.Units, it.reopen = 0, true
		}
	default:
		judgeFree(it, st, req)
	}
}

// judgeFree is about an upload of which nothing was sent in its generation.
func judgeFree(it *Item, st store.TaskStatus, req Request) {
	v := it.upload.ledger
	reopened := v.known && v.generation > 0 // and if it was sent before, a person did so
	switch {
	case !st.Finished:
	case req.Force, req.Replace && st.Verdict == tasks.Archive, reopened && st.Verdict != tasks.Archive:
		it.reopen = true
	case st.Verdict == tasks.Done:
		known(it, st)
	case st.Verdict == tasks.Hold:
		it.refuse("waits for a person to decide (%s): see `inspect uploads`", st.Reason)
	case st.Final:
		it.refuse("failed for good before (%s): --force tries again", st.Reason)
	default:
		it.refuse("is archived (%s): replay it with `inspect replay %s`, or try again with --force", st.Reason, it.Payload.Key)
	}
}

func known(it *Item, st store.TaskStatus) {
	it.Status, it.Outcome, it.Result, it.Units = AlreadyDone, st.Outcome, st.Result, 0
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func since(t time.Time) string { return t.UTC().Format(time.RFC3339) }
