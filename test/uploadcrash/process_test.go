package uploadcrash

import (
	"slices"
	"time"

	"reprise/internal/proctest"
)

// patience bounds waits for what must come. It is there only to end a test that
// hangs: a machine that is busy with others makes every step slow.
const patience = 2 * time.Minute

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
	return proctest.Poll(within, ok)
}
