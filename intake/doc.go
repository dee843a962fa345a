// Package intake is what enqueuing does, for the command line and for
// programs: expand the inputs, look at their content, hash, compare with what
// is known, and put the rest into the queue.
//
//	plan, err := in.Plan(ctx, request, args, nil)   // costs nothing, changes nothing
//	m, err := intake.ReadManifest(ctx, r, name, dir)
//	plan, err := in.PlanManifest(ctx, request, m, nil)
//	err = in.Enqueue(ctx, plan, nil)                // safe to repeat
//	err = in.Wait(ctx, plan, func(Result) {…})
//
// Enqueuing is safe to repeat at any point, also after a crash: the store
// knows a task before the queue does, the key is the queue's task id, so a
// task is in the queue once or the next run puts it there.
//
// # Uploads
//
// An upload is billed each time and cannot be undone, so it claims its slot in
// the upload ledger (package idempotency) before it is registered and queued:
//
//	allot an audio_id, if it has none → claim → register in the store → asynq
//
// A crash behind the claim leaves a slot whose content the next run recognises,
// with the same audio_id, and queues; one before it leaves at most an audio_id
// that nobody uses. What the claim refuses leaves no trace in the store. Where
// ledger and store differ, the ledger says whether something was sent: what was
// is queued again only for the worker to end the task, without a call. Two runs
// at the same time that allot for the same content end with one slot.
//
// A file is hashed when it is planned. If it changes before a worker reads it,
// the worker notices (input_changed) and calls nobody.
package intake
