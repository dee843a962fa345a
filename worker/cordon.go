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

// cordon holds the queues that this worker skips because AudD refuses its token. Other workers may have another
// token, so the queue is not paused. Safe for concurrent use.
type cordon struct {
	gates   *admission.Gates
	sources []admission.SourceConfig // with the fingerprints of this worker's tokens
	changed func(context.Context)    // called after a change of queues
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

// add cordons a queue if AudD refuses this worker's own token, and then returns once the worker takes no more of
// its tasks. Call it after a halt refused a delivery. others reports whether another worker may have a token that
// works.
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
		c.log.Warn("AudD refuses the token of this worker: it takes no tasks of the queue until it is restarted with another token or the source is resumed",
			"queue", queue)
	}
	c.changed(ctx)
	return others
}

// run ends the cordons of sources that were resumed, until ctx ends.
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
