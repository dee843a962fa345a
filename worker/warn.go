package worker

import (
	"log/slog"
	"sync"
	"time"
)

// warnEvery is the least time between two warnings of one cause.
const warnEvery = 10 * time.Second

// warner logs each cause at most once per interval, with how often it was
// held back: an outage gives a line now and then, never a line per call.
type warner struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]time.Time
	held map[string]int
}

func newWarner(log *slog.Logger) *warner {
	return &warner{log: log, last: map[string]time.Time{}, held: map[string]int{}}
}

func (w *warner) do(cause, text string, err error) {
	now := time.Now()
	w.mu.Lock()
	if now.Sub(w.last[cause]) < warnEvery {
		w.held[cause]++
		w.mu.Unlock()
		return
	}
	held := w.held[cause]
	w.last[cause], w.held[cause] = now, 0
	w.mu.Unlock()
	w.log.Warn(text, "error", err, "repeats_held_back", held)
}
