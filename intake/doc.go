// Package intake enqueues audio, for the command line and for programs: it expands the inputs, checks their
// content, hashes them, compares them with the settled and queued tasks, and enqueues the rest.
//
//	plan, err := in.Plan(ctx, request, args, nil)   // writes nothing, costs nothing
//	err = in.Enqueue(ctx, plan, nil)                // safe to repeat
//	err = in.Wait(ctx, plan, func(Result) {…})
//
// ReadManifest and PlanManifest do the same for a CSV or JSONL file.
//
// Enqueuing can be repeated at any time, also after a crash. A task is registered in the store before it is queued, and
// its key is its id in the queue. A repeated run queues what an earlier run left out, and queues nothing twice.
//
// # Uploads
//
// An upload is billed each time and cannot be undone. It therefore claims its slot in the upload ledger (package
// idempotency) before it is registered and queued:
//
//	assign an audio_id, if it has none → claim → register in the store → asynq
//
// After a crash between claim and queue, the next run finds the slot by its content and queues the upload with the same
// audio_id. A crash before the claim leaves at most an unused audio_id. A refused claim leaves no row in the store. If
// ledger and store differ, the ledger decides whether the upload was sent. A sent upload without a verdict in the store
// is queued again, and the worker ends its task without a call. Two runs that assign ids to the same content at the same
// time end with one slot.
//
// A file is hashed when it is planned. If it changes before a worker reads it, the worker archives the task
// (input_changed) and makes no call.
package intake
