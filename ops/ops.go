// Package ops implements the operator's reports and actions: typed reports (why a task waits, queues, sources,
// limits, costs …) and actions (pause, halt, resume, replay, resolve …). The command inspect prints the reports.
// This package prints nothing and reads no flags.
//
// # Where things are
//
//	because.go, blocked.go   why a task waits, in one sentence: pure functions over Evidence
//	why.go, waiting.go       the evidence of one task, and of the tasks in a list
//	source.go, halt.go       accounts: state, halts, resuming
//	queue.go, pause.go       queues: counts, pause reasons, pausing
//	limit.go, limitvalue.go  limits in force, changing them, and their notation
//	task.go, find.go         lists of tasks, and the task that a name stands for
//	result.go, replay.go, cost.go, upload.go, resolve.go, store.go
//
// Times in reports are UTC; sentences use Options.Zone. Names in sentences have no control characters.
package ops

// Ops has the reports and actions by subject. Safe for concurrent use.
type Ops struct {
	Queues  *Queues
	Sources *Sources
	Limits  *Limits
	Tasks   *Tasks
	Replays *Replays
	Costs   *Costs
	Uploads *Uploads
	Stores  *Stores
}

// New returns an Ops. It opens no connection, so there is nothing to close.
func New(o Options) *Ops {
	b := newBase(o)
	return &Ops{
		Queues: &Queues{b}, Sources: &Sources{b}, Limits: &Limits{b}, Tasks: &Tasks{b}, Replays: &Replays{b}, Costs: &Costs{b}, Uploads: &Uploads{b},
		Stores: &Stores{b},
	}
}
