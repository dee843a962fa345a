package ops

import (
	"slices"
	"time"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/internal/text"
	"reprise/store"
	"reprise/tasks"
)

// Evidence is everything that is known about one task at one time.
type Evidence struct {
	Key         string
	Status      store.TaskStatus
	Submissions []store.BatchRow
	LastCall    *store.Call   // nil = none was made
	Sum         store.CallSum // of its calls
	Input       string        // where its audio is; a URL without its query
	Pinned      string        // source it must use; "" = any
	Units       int64         // of its call, at most; 0 = unknown
	InList      bool          // gathered for a list: Ahead, the record and the permit are unknown

	Queue     string // where it is; if no queue has it, where it belongs
	Group     string
	State     queue.State
	LastError string    // asynq's
	NextRun   time.Time // of a scheduled task or a retry
	Since     time.Time // pending since
	Ahead     int64     // pending tasks that run before it; -1 = unknown or not pending

	Stats   queue.Stats
	Pause   admission.PauseState
	Workers int // that serve its queue
	Gates   admission.TaskState
}

// path returns the task's path.
func (e Evidence) path() tasks.Path { return e.Gates.Path }

// finished reports whether the task has its verdict.
func (e Evidence) finished() bool { return e.Status.Known && e.Status.Finished }

// usable returns the sources that the task may use.
func (e Evidence) usable() []admission.SourceState {
	return slices.DeleteFunc(slices.Clone(e.Gates.State.Sources), func(st admission.SourceState) bool {
		return e.Pinned != "" && st.Source != e.Pinned
	})
}

// group returns the state of the task's group, nil if there is no such group.
func (e Evidence) group() *admission.GroupState {
	for i, g := range e.Gates.State.Groups {
		if e.Group != "" && g.Name == e.Group {
			return &e.Gates.State.Groups[i]
		}
	}
	return nil
}

// Cause is why a task is where it is: one reason, one time, one next step.
type Cause struct {
	State   string    // one word in capitals: WAITING, RUNNING, DONE, HELD, ARCHIVED, NOT QUEUED, UNKNOWN; ARCHIVED may say more
	Because string    // one sentence
	Starts  time.Time // zero = unknown, or see When
	Guess   bool      // Starts is an estimate
	When    string    // what must happen first, where no time is known; "" = nothing is known
	ToDo    []string  // commands and advice, the best first
}

// lasts reports whether c lasts longer than other. A cause that only an operator ends lasts longest.
func (c Cause) lasts(other Cause) bool {
	if c.When != "" || other.When != "" {
		return c.When != "" && other.When == ""
	}
	return c.Starts.After(other.Starts)
}

// describe returns the song that a task found, or its reason.
func describe(st store.TaskStatus) string {
	if !st.Finished || st.Verdict != tasks.Done {
		return st.Reason
	}
	return text.Song(st.Result)
}
