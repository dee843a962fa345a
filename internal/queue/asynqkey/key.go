// Package asynqkey names the Redis keys of asynq v0.26. It imports nothing: test helpers of every package may use it.
package asynqkey

// Keys that are not part of a queue.
const (
	Queues  = "asynq:queues"   // set of all queue names
	Servers = "asynq:servers"  // sorted set of server keys, by expiry
	Workers = "asynq:workers:" // prefix of the hashes that list the running tasks of a server
)

// Part is the last part of a queue's key.
type Part string

// The parts of a queue. Pending and Active are lists of task ids. Paused is a string. The others are sorted sets of task
// ids by Unix time.
const (
	Pending   Part = "pending"
	Active    Part = "active"
	Lease     Part = "lease" // of active tasks, by expiry
	Scheduled Part = "scheduled"
	Retry     Part = "retry"
	Archived  Part = "archived"
	Completed Part = "completed"
	Paused    Part = "paused" // exists while the queue is paused
)

// Of returns a key of a queue. The braces put all keys of a queue into one Redis Cluster slot.
func Of(queue string, part Part) string { return "asynq:{" + queue + "}:" + string(part) }

// Task returns the key of a task's hash, which has the fields msg, state, pending_since and result.
func Task(queue, id string) string { return Of(queue, Part("t:"+id)) }
