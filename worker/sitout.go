package worker

import (
	"context"
	"slices"
	"sync"

	"reprise/admission"
	"reprise/tasks"
)

// sitout keeps this worker away from queues none of whose tasks it may call
// for, because AudD refused its own tokens. Others may have other tokens:
// such a worker must neither close the queue for them nor hand their tasks
// back. Safe for concurrent use.
type sitout struct {
	w   *Worker
	mu  sync.Mutex
	out map[string]bool // by queue
}

func (s *sitout) has(queue string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out[queue]
}

// begin is asked after a halt refused a delivery. If AudD refused this
// worker's own token it takes nothing more from the queue, and begin reports
// whether others may still have a token that is good. It returns when nothing
// more is taken.
func (s *sitout) begin(ctx context.Context, queue string) (others bool) {
	path, _, err := tasks.SplitQueue(queue)
	if err != nil {
		return false
	}
	state, err := s.w.gates.State(ctx)
	if err != nil {
		return false // admission says so itself
	}
	own := false
	for _, src := range state.Sources {
		if src.Path == path && slices.Contains(src.RefusedTokens, s.w.fingerprintOf(src.Source)) {
			own, others = true, others || src.Halt == ""
		}
	}
	if !own {
		return false
	}
	s.mu.Lock()
	first := !s.out[queue]
	s.out[queue] = true
	s.mu.Unlock()
	if first {
		s.w.log.Warn("AudD refuses this worker's token: it takes no tasks of the queue until it is started with another one or a person resumes",
			"queue", queue)
	}
	s.w.servers.refresh()
	return others
}

// review ends what is over: a person resumed the source.
func (s *sitout) review(ctx context.Context) {
	s.mu.Lock()
	var queues []string
	for queue := range s.out {
		queues = append(queues, queue)
	}
	s.mu.Unlock()
	for _, queue := range queues {
		path, group, err := tasks.SplitQueue(queue)
		if err != nil {
			continue
		}
		openings, err := s.w.gates.Check(ctx, path, group, 1)
		if err != nil {
			continue
		}
		if _, _, shut := admission.AllBlocked(openings); shut {
			continue
		}
		s.mu.Lock()
		delete(s.out, queue)
		s.mu.Unlock()
		s.w.servers.refresh()
	}
}

func (w *Worker) fingerprintOf(source string) string {
	for _, s := range w.opts.Admission.Sources {
		if s.Name == source {
			return s.Fingerprint
		}
	}
	return ""
}
