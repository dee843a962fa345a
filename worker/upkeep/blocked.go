package upkeep

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// Blocked says why no source takes a call of a queue now.
type Blocked struct {
	Gate   admission.Gate // of the source that is available first
	Source string         // empty when no source serves the queue at all
	Wait   time.Duration  // until it may be available
	Rate   bool           // no gate is closed, but the rates are used up until then
}

const (
	// noSourceWait is how long a queue that no source serves is paused at a time.
	noSourceWait = time.Hour
	// rateWaitMin is the shortest wait for a rate for which a queue is paused or
	// stays paused. A queue is paused when the wait is longer than a slot waits
	// and resumed at half of it, so that a slow rate does not flip it.
	rateWaitMin = 5 * time.Second
)

// Evidence is the reason for display.
func (b Blocked) Evidence() string {
	switch {
	case b.Source == "":
		return "no source may serve this queue"
	case b.Rate:
		return fmt.Sprintf("the rate of every source is used up; %s takes a call first, by gate %s", b.Source, b.Gate)
	}
	return fmt.Sprintf("every source is blocked; %s is available first, by gate %s", b.Source, b.Gate)
}

// check asks the gates about a call of a queue for so many units, of a task
// that is bound to no source. blocked is false when some source takes it soon.
func (p *PauseController) check(ctx context.Context, queue string, units int64) (b Blocked, blocked bool, err error) {
	path, group, err := tasks.SplitQueue(queue)
	if err != nil {
		return b, false, err
	}
	sources, err := p.gates.Check(ctx, path, group, units)
	if err != nil {
		return b, false, err
	}
	if len(sources) == 0 {
		return Blocked{Gate: admission.GateNoCandidate, Wait: noSourceWait}, true, nil
	}
	first := slices.MinFunc(sources, func(a, b admission.SourceCheck) int { return cmp.Compare(a.Wait, b.Wait) })
	_, _, closed := admission.AllBlocked(sources)
	b = Blocked{Gate: first.Gate, Source: first.Source, Wait: first.Wait, Rate: !closed}
	return b, closed || first.Wait > max(p.slotWait/2, rateWaitMin), nil
}
