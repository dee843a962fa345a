// Package intake enqueues audio, for the command line and for programs: it expands the inputs, checks their
// content, hashes them, compares them with what is settled or queued already, and enqueues the rest.
//
//	plan, err := in.Plan(ctx, request, args, nil)   // writes nothing, costs nothing
//	err = in.Enqueue(ctx, plan, nil)                // safe to repeat
//	err = in.Wait(ctx, plan, func(Result) {…})
//
// ReadManifest and PlanManifest do the same for a CSV or JSONL file.
//
// Enqueuing can be repeated at any time, also after a crash: a task is registered in the store before it is queued,
// and its key is its id in the queue. So the queue has it once, or the next run puts it there.
//
// # Uploads
//
// An upload is billed each time and cannot be undone. It therefore claims its slot in the upload ledger (package
// idempotency) before it is registered and queued:
//
//	assign an audio_id, if it has none → claim → register in the store → asynq
//
// After a crash behind the claim, the next run finds the slot by its content and queues the upload with the same
// audio_id. A crash before the claim leaves at most an unused audio_id. A refused claim leaves no trace in the
// store. If ledger and store differ, the ledger decides whether something was sent; a sent upload is queued again
// only so that the worker ends its task, without a call. Two runs that assign ids to the same content at the same
// time end with one slot.
//
// A file is hashed when it is planned. If it changes before a worker reads it, the worker archives the task
// (input_changed) and makes no call.
package intake
