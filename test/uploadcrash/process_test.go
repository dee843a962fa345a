package uploadcrash

import (
	"slices"
	"time"

	"reprise/internal/proctest"
)

// stopTime is how long a worker may take to finish what it runs.
const stopTime = 60 * time.Second

// said reports whether a worker logged one of the messages about a task.
func said(p *proctest.Process, task string, messages ...string) bool {
	for l := range p.Log.All() {
		if msg, _ := l["msg"].(string); l.Is("task_id", task) && slices.Contains(messages, msg) {
			return true
		}
	}
	return false
}

func eventually(within time.Duration, ok func() bool) bool {
	return proctest.Poll(50*time.Millisecond, within, ok)
}
