package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// waits knows what every delivery is waiting for right now, and says so every
// 15 s for waits longer than that: one line per cause, task ids for few.
type waits struct {
	log *slog.Logger
	mu  sync.Mutex
	all map[*delivery]wait
}

type wait struct {
	since time.Time
	cause string
	path  tasks.Path
	id    string
}

// waitLines is the interval of the lines, and the age from which a wait counts.
const waitLines = 15 * time.Second

// waitIDs is up to how many waiting tasks are named.
const waitIDs = 3

func newWaits(log *slog.Logger) *waits { return &waits{log: log, all: map[*delivery]wait{}} }

// begin notes that a delivery waits: for the gate of a refusal, or for the
// answer of a request in flight when why is nil. The result ends the wait.
func (w *waits) begin(d *delivery, why error) func() {
	cause := "request in flight"
	var refusal *admission.Refusal
	var inFlight *admission.InFlight
	switch {
	case errors.As(why, &refusal):
		cause = "gate " + string(refusal.Gate)
	case errors.As(why, &inFlight):
		cause = "in flight elsewhere"
	case why != nil:
		cause = "a store that is down"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	since := time.Now()
	if d.waitCause == cause { // one long wait made of several looks
		since = d.waitSince
	}
	d.waitCause, d.waitSince = cause, since
	w.all[d] = wait{since: since, cause: cause, path: d.payload.Path, id: d.id}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, d)
	}
}

func (w *waits) run(ctx context.Context) {
	tick := time.NewTicker(waitLines)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.say(now)
		}
	}
}

func (w *waits) say(now time.Time) {
	type line struct {
		count  int
		oldest time.Time
		ids    []string
	}
	lines := map[[2]string]*line{}
	w.mu.Lock()
	for _, one := range w.all {
		if now.Sub(one.since) < waitLines {
			continue
		}
		k := [2]string{string(one.path), one.cause}
		if lines[k] == nil {
			lines[k] = &line{oldest: one.since}
		}
		l := lines[k]
		l.count++
		l.ids = append(l.ids, one.id)
		if one.since.Before(l.oldest) {
			l.oldest = one.since
		}
	}
	w.mu.Unlock()
	for k, l := range lines {
		args := []any{"path", k[0], "cause", k[1], "tasks", l.count, "longest", now.Sub(l.oldest).Round(time.Second)}
		if l.count <= waitIDs {
			args = append(args, "task_ids", strings.Join(l.ids, " "))
		}
		w.log.Info("waiting", args...)
	}
}
