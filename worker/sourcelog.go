package worker

import (
	"log/slog"
	"sync"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// sourceLog logs when a source stops taking calls of a path and when it takes them again: one line per change.
// Replies may arrive in any order, so it ignores one whose request was sent before the last change. Safe for
// concurrent use.
type sourceLog struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]change // by "source/path"
}

// change is the last line about a source+path.
type change struct {
	gate admission.Gate // that blocks it; "" = none
	at   time.Time
}

// briefThrottle is the longest throttle that is not logged. Throttles without a Retry-After are not longer, and
// are frequent while limits are learned.
const briefThrottle = 2 * time.Second

func newSourceLog(log *slog.Logger) *sourceLog {
	return &sourceLog{log: log, last: map[string]change{}}
}

func (s *sourceLog) refused(path tasks.Path, r *admission.Refusal, asked time.Time) {
	switch r.Gate {
	case admission.GateBreaker, admission.GateHalt, admission.GateThrottle:
	default:
		return
	}
	if r.Gate == admission.GateThrottle && r.RetryAfter <= briefThrottle {
		return
	}
	if s.changed(r.Source+"/"+string(path), r.Gate, asked) {
		s.log.Warn("source takes no calls", "source", r.Source, "path", string(path), "gate", string(r.Gate), "for", r.RetryAfter)
	}
}

func (s *sourceLog) granted(p *admission.Permit, asked time.Time) {
	if p.Probe {
		s.log.Info("probing a source", "source", p.Source, "path", string(p.Path), "epoch", p.Epoch)
		return
	}
	if s.changed(p.Source+"/"+string(p.Path), "", asked) {
		s.log.Info("source takes calls again", "source", p.Source, "path", string(p.Path), "epoch", p.Epoch)
	}
}

// changed records which gate blocks a source+path, "" for none, and reports whether that is a change.
func (s *sourceLog) changed(name string, gate admission.Gate, asked time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[name]
	if last.gate == gate || asked.Before(last.at) {
		return false
	}
	s.last[name] = change{gate: gate, at: time.Now()}
	return true
}
