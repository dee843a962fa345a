package intake

import (
	"time"

	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

// urlReuse is how long the result of a URL is reused. The content of a URL may change.
const urlReuse = 24 * time.Hour

// decide sets the status of an item whose task has the status st in the store.
func (in *Intake) decide(it *Item, st store.TaskStatus, req Request) {
	switch {
	case it.Payload.Path == tasks.Upload:
		in.decideUpload(it, st, req)
	case st.Finished:
		in.decideSettled(it, st, req.Force)
	}
}

// decideSettled takes the result of a settled task from the store, or refuses the item with the next step. again queues
// the task for another call instead.
func (in *Intake) decideSettled(it *Item, st store.TaskStatus, again bool) {
	stale := it.Payload.Input.Kind == tasks.URLInput && it.Payload.Path != tasks.Upload &&
		in.opts.Now().Sub(st.FinishedAt) > urlReuse
	switch {
	case again, stale && st.Verdict == tasks.Done:
		it.reopen = true
	case st.Verdict == tasks.Done:
		it.Status, it.Outcome, it.Result, it.Units = AlreadyDone, st.Outcome, st.Result, 0
	case st.Verdict == tasks.Hold:
		it.refuse("is held until an operator decides (%s): see `inspect uploads`", st.Reason)
	case st.Final:
		it.refuse("failed permanently (%s): --force tries again, which is billed again", st.Reason)
	default:
		it.refuse("is archived (%s): replay it with `inspect replay %s`, or try again with --force", st.Reason, it.Payload.Key)
	}
}

// decideUpload combines ledger and store: the ledger says whether the upload was sent, the store whether its task
// has ended. A sent upload is not sent again without Force. If the store has not ended its task, the task is queued
// and the worker ends it from the ledger, without a call.
func (in *Intake) decideUpload(it *Item, st store.TaskStatus, req Request) {
	it.Units, it.reopen, it.sendAgain = 1, false, false
	done := st.Finished && st.Verdict == tasks.Done
	reason := ""
	if it.ledger.reason != "" {
		reason = " (" + it.ledger.reason + ")"
	}
	switch state := it.ledger.state; {
	case state == idempotency.Uncertain:
		it.refuse("may have reached AudD and is not sent again automatically%s: decide with `inspect uploads resolve %s`",
			reason, it.Payload.Key)
	case state == idempotency.Sent && done:
		in.decideSettled(it, st, false)
	case state == idempotency.Sent:
		it.Units = 0
	case state != idempotency.Settled && state != idempotency.Rejected:
		in.decideUnsent(it, st, req)
	case req.Force && st.Finished:
		it.reopen, it.sendAgain = true, true
	case state == idempotency.Settled && done:
		in.decideSettled(it, st, false)
	case state == idempotency.Rejected && st.Finished:
		it.refuse("was rejected by AudD before%s: --force sends it again, which may be billed", reason)
	default:
		it.Units, it.reopen = 0, true
	}
}

// decideUnsent sets the status of an upload that was not sent in this generation.
func (in *Intake) decideUnsent(it *Item, st store.TaskStatus, req Request) {
	// An operator has allowed another send.
	reopened := it.ledger.known && it.ledger.generation > 0
	if st.Finished {
		archived := st.Verdict == tasks.Archive
		in.decideSettled(it, st, req.Force || req.Replace && archived || reopened && !archived)
	}
}
