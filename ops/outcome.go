package ops

import (
	"reprise/internal/text"
	"reprise/store"
	"reprise/tasks"
)

// stateWord is waiting, or the verdict that finished a task.
func stateWord(finished bool, verdict tasks.Verdict) string {
	if !finished {
		return "waiting"
	}
	return string(verdict)
}

// describe says in a few words what a task came to: the song, or the reason.
func describe(st store.TaskStatus) string {
	if !st.Finished || st.Verdict != tasks.Done {
		return st.Reason
	}
	return text.Song(st.Result)
}
