// Package intake is what enqueuing does, for the command line and for
// programs: expand the inputs, look at their content, hash, compare with what
// is known, and put the rest into the queue.
//
//	plan, err := in.Plan(ctx, request, args, nil)   // costs nothing, changes nothing
//	err = in.Enqueue(ctx, plan, nil)                // safe to repeat
//	err = in.Wait(ctx, plan.Batch, func(Row) {…})
//
// Enqueuing is safe to repeat at any point, also after a crash: the store
// knows a task before the queue does, the key is the queue's task id, so a
// task is in the queue once or the next run puts it there.
//
// A file is hashed when it is planned. If it changes before a worker reads it,
// the worker notices (input_changed) and calls nobody.
package intake
