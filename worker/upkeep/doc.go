// Package upkeep has the jobs that run beside deliveries in every worker:
//
//   - OutboxDrain writes settlements that wait in Redis to SQL,
//   - PauseController pauses queues that no source can serve, and resumes them,
//   - Replayer runs tasks again that an account refusal archived, once the
//     source answers,
//   - Verifier enqueues recognitions of uncertain uploads,
//   - StoreWatch notices a second store on the same Redis,
//   - Seeder restores unit budgets from call rows (on demand, it has no Run).
//
// Each job has only what it works on and a Run that returns when its context
// ends. A Leader keeps work that one worker can do for all to one of them.
package upkeep
