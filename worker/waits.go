package worker

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"reprise/internal/timer"
	"reprise/tasks"
)

// The causes of waits, beside "gate <name>".
const (
	causeCall     = "request in flight"
	causeInFlight = "in flight elsewhere"
	causeStore    = "a store that is down"
)

// waits has the cause of every delivery's wait. Every 15 s it logs the waits that last longer: one line per
// cause, with the task ids if they are few. Safe for concurrent use.
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

const (
	// waitInterval is the interval of the lines and the age from which a wait is logged.
	waitInterval = 15 * time.Second
	// waitIDs is the largest number of waiting tasks whose ids are logged.
	waitIDs = 3
)

func newWaits(log *slog.Logger) *waits { return &waits{log: log, all: map[*delivery]wait{}} }

// begin records that a delivery waits; the returned function ends the wait. Consecutive waits with the same cause
// count as one.
func (w *waits) begin(d *delivery, cause string) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := time.Now()
	if d.waitCause == cause {
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
	timer.Every(ctx, waitInterval, func(context.Context) { w.report(time.Now()) })
}

func (w *waits) report(now time.Time) {
	type line struct {
		count  int
		oldest time.Time
		ids    []string
	}
	lines := map[[2]string]*line{}
	w.mu.Lock()
	for _, one := range w.all {
		if now.Sub(one.since) < waitInterval {
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
