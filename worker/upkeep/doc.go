// Package upkeep has the jobs that run beside deliveries in every worker:
//
//   - OutboxDrain writes the settlements of the outbox to SQL,
//   - PauseController pauses queues that no source can serve, and resumes them,
//   - Replayer runs tasks again that an account refusal archived, once the source accepts calls,
//   - Verifier enqueues recognitions of uncertain uploads,
//   - OverdueSends ends uploads that were sent and have no result in time,
//   - StoreWatch notices a second store on the same Redis,
//   - Seeder restores unit budgets from call rows, on demand.
//
// The Run of a job returns when its context ends. A Leader chooses one worker for jobs that one can do for all.
package upkeep
