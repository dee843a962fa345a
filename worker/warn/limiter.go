// Package warn logs failures that repeat, such as those of a store that is down, without one line per task.
package warn

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// interval is the shortest time between two warnings of one cause.
const interval = 10 * time.Second

// Limiter logs each cause at most once in 10 s, with the number of warnings that it left out since. Safe for
// concurrent use.
type Limiter struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]time.Time
	left map[string]int
}

// NewLimiter returns a Limiter that logs to log.
func NewLimiter(log *slog.Logger) *Limiter {
	return &Limiter{log: log, last: map[string]time.Time{}, left: map[string]int{}}
}

// Warn logs text and err unless the cause was logged less than 10 s ago. It ignores a nil err, and all errors
// once ctx has ended, because they are then those of a stop.
func (l *Limiter) Warn(ctx context.Context, cause, text string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	now := time.Now()
	l.mu.Lock()
	if now.Sub(l.last[cause]) < interval {
		l.left[cause]++
		l.mu.Unlock()
		return
	}
	left := l.left[cause]
	l.last[cause], l.left[cause] = now, 0
	l.mu.Unlock()
	l.log.WarnContext(ctx, text, "error", err, "left_out", left)
}
