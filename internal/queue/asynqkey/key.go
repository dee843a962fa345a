// Package asynqkey names asynq's Redis keys, as asynq v0.26 writes them. It imports nothing, so that test helpers of any
// package may use it.
package asynqkey

// Keys that are not part of a queue.
const (
	Queues  = "asynq:queues"   // set of all queue names
	Servers = "asynq:servers"  // sorted set of the servers' own keys, by expiry
	Workers = "asynq:workers:" // beginning of the keys that say which tasks a server runs
)

// Part is one of a queue's keys.
type Part string

// The parts of a queue. Pending and Active are lists of task ids, Paused is a string, the others are sorted sets of ids
// by Unix time.
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

// Of is the key of a part of a queue. The braces keep all of a queue's keys in one Redis Cluster slot.
func Of(queue string, part Part) string { return "asynq:{" + queue + "}:" + string(part) }

// Task is the hash of one task: msg, state, pending_since, result.
func Task(queue, id string) string { return Of(queue, Part("t:"+id)) }
