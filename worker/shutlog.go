package worker

import (
	"log/slog"
	"sync"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// shutLog says once when a source stops taking calls of a path, and once when
// it takes them again: one line per change, never one per task.
type shutLog struct {
	log  *slog.Logger
	mu   sync.Mutex
	shut map[string]admission.Gate // by "source/path"
}

// shutLogMin is the least throttle worth a line: shorter ones, without a
// Retry-After, come and go by the dozen while the limits are being learned.
const shutLogMin = 2 * time.Second

func newShutLog(log *slog.Logger) *shutLog {
	return &shutLog{log: log, shut: map[string]admission.Gate{}}
}

func (s *shutLog) refused(path tasks.Path, r *admission.Refusal) {
	switch r.Gate {
	case admission.GateBreaker, admission.GateHalt, admission.GateThrottle:
	default:
		return
	}
	if r.Gate == admission.GateThrottle && r.RetryAfter < shutLogMin {
		return
	}
	name := r.Source + "/" + string(path)
	s.mu.Lock()
	known := s.shut[name] == r.Gate
	s.shut[name] = r.Gate
	s.mu.Unlock()
	if !known {
		s.log.Warn("source takes no calls", "source", r.Source, "path", string(path), "gate", string(r.Gate), "for", r.RetryAfter)
	}
}

func (s *shutLog) granted(p *admission.Permit) {
	if p.Probe {
		s.log.Info("probing a source", "source", p.Source, "path", string(p.Path), "epoch", p.Epoch)
		return
	}
	name := p.Source + "/" + string(p.Path)
	s.mu.Lock()
	_, was := s.shut[name]
	delete(s.shut, name)
	s.mu.Unlock()
	if was {
		s.log.Info("source takes calls again", "source", p.Source, "path", string(p.Path), "epoch", p.Epoch)
	}
}
