package worker

import (
	"log/slog"
	"sync"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// shutLog says once when a source stops taking calls of a path, and once when
// it takes them again: one line per change, never one per task. Answers arrive
// in any order; one that was asked for before the last change says nothing new.
type shutLog struct {
	log  *slog.Logger
	mu   sync.Mutex
	last map[string]change // by "source/path"
}

// change is the last line written about a source+path.
type change struct {
	gate admission.Gate // that shut it; "" when it was opened
	at   time.Time
}

// briefThrottle is the longest throttle that is not worth a line: those without a
// Retry-After last as long at most, and come and go by the dozen while the
// limits are being learned.
const briefThrottle = 2 * time.Second

func newShutLog(log *slog.Logger) *shutLog {
	return &shutLog{log: log, last: map[string]change{}}
}

func (s *shutLog) refused(path tasks.Path, r *admission.Refusal, asked time.Time) {
	switch r.Gate {
	case admission.GateBreaker, admission.GateHalt, admission.GateThrottle:
	default:
		return
	}
	if r.Gate == admission.GateThrottle && r.RetryAfter <= briefThrottle {
		return
	}
	name := r.Source + "/" + string(path)
	if s.changed(name, r.Gate, asked) {
		s.log.Warn("source takes no calls", "source", r.Source, "path", string(path), "gate", string(r.Gate), "for", r.RetryAfter)
	}
}

func (s *shutLog) granted(p *admission.Permit, asked time.Time) {
	if p.Probe {
		s.log.Info("probing a source", "source", p.Source, "path", string(p.Path), "epoch", p.Epoch)
		return
	}
	if s.changed(p.Source+"/"+string(p.Path), "", asked) {
		s.log.Info("source takes calls again", "source", p.Source, "path", string(p.Path), "epoch", p.Epoch)
	}
}

// changed notes what shuts a source+path, "" for nothing; true if that is news.
func (s *shutLog) changed(name string, gate admission.Gate, asked time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[name]
	if last.gate == gate || asked.Before(last.at) {
		return false
	}
	s.last[name] = change{gate: gate, at: time.Now()}
	return true
}
