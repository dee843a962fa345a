package worker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"reprise/admission"
	"reprise/internal/timer"
	"reprise/tasks"
)

// cordon: this worker takes no tasks of the queue because AudD refuses its own
// token. Other workers may have another token, so it must neither pause the
// queue for them nor send their tasks back. Safe for concurrent use.
type cordon struct {
	gates   *admission.Gates
	sources []admission.SourceConfig // with the fingerprints of this worker's tokens
	changed func(context.Context)    // serves the queues that are to be served now
	log     *slog.Logger
	mu      sync.Mutex
	queues  map[string]bool
}

// cordonInterval is how often cordoned queues are checked.
const cordonInterval = time.Second

func (c *cordon) has(queue string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queues[queue]
}

// add is called after a halt refused a delivery. If AudD refused this worker's
// own token the queue is cordoned, and others reports whether another worker
// may still have a token that works. When it returns nothing more is taken.
func (c *cordon) add(ctx context.Context, queue string) (others bool) {
	path, _, err := tasks.SplitQueue(queue)
	if err != nil {
		return false
	}
	state, err := c.gates.State(ctx)
	if err != nil {
		return false // deliveries report that admission is down
	}
	own := false
	for _, src := range state.Sources {
		if src.Path == path && slices.Contains(src.RefusedTokens, c.fingerprint(src.Source)) {
			own, others = true, others || src.Halt == ""
		}
	}
	if !own {
		return false
	}
	c.mu.Lock()
	first := !c.queues[queue]
	c.queues[queue] = true
	c.mu.Unlock()
	if first {
		c.log.Warn("AudD refuses this worker's token: it takes no tasks of the queue until it starts with another token or an operator resumes the source",
			"queue", queue)
	}
	c.changed(ctx)
	return others
}

// run ends cordons of sources that were resumed, until ctx ends.
func (c *cordon) run(ctx context.Context) {
	timer.Every(ctx, cordonInterval, func(ctx context.Context) {
		c.mu.Lock()
		queues := slices.Collect(maps.Keys(c.queues))
		c.mu.Unlock()
		for _, queue := range queues {
			c.review(ctx, queue)
		}
	})
}

func (c *cordon) review(ctx context.Context, queue string) {
	path, group, err := tasks.SplitQueue(queue)
	if err != nil {
		return
	}
	sources, err := c.gates.Check(ctx, path, group, 1)
	if err != nil {
		return
	}
	if _, _, blocked := admission.AllBlocked(sources); blocked {
		return
	}
	c.mu.Lock()
	delete(c.queues, queue)
	c.mu.Unlock()
	c.changed(ctx)
}

func (c *cordon) fingerprint(source string) string {
	for _, s := range c.sources {
		if s.Name == source {
			return s.Fingerprint
		}
	}
	return ""
}
