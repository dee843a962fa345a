package record

import (
	"log/slog"
	"sync"
	"time"
)

// warnInterval is the least time between two warnings of one cause.
const warnInterval = 10 * time.Second

// Warner logs failures that may repeat at every call: each cause at most once
// in 10 s, with the number of warnings left out since. Safe for concurrent use.
type Warner struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]time.Time
	left map[string]int
}

// NewWarner logs to log.
func NewWarner(log *slog.Logger) *Warner {
	return &Warner{log: log, last: map[string]time.Time{}, left: map[string]int{}}
}

// Warn logs text and err unless the cause was logged less than 10 s ago.
func (w *Warner) Warn(cause, text string, err error) {
	now := time.Now()
	w.mu.Lock()
	if now.Sub(w.last[cause]) < warnInterval {
		w.left[cause]++
		w.mu.Unlock()
		return
	}
	left := w.left[cause]
	w.last[cause], w.left[cause] = now, 0
	w.mu.Unlock()
	w.log.Warn(text, "error", err, "left_out", left)
}
