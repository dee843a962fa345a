package admission

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/tasks"
)

// Wait waits until the caller should acquire again after a refusal, or until ctx ends. Callers of this process take turns:
// the one that has waited longest is first. A caller may get its turn before Refusal.RetryAfter has passed.
func (g *Gates) Wait(ctx context.Context, r Request, refusal *Refusal) error {
	if !refusal.Gate.isBusy() {
		// A blocked source reopens for all callers at once. Spread them.
		return sleep(ctx, refusal.RetryAfter+rand.N(min(refusal.RetryAfter/10, 500*time.Millisecond)+1))
	}
	w := g.waiters.join(r, refusal)
	timer := time.NewTimer(time.Until(w.due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			g.waiters.leave(w)
			return ctx.Err()
		case <-w.turn:
			return nil
		case <-timer.C:
			if g.waiters.takeTurn(w) {
				return nil
			}
			timer.Reset(time.Until(w.due))
		}
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitlist orders the refused callers of this process. A turn arises when a caller's wait ends, when a call ends, or when a
// newcomer arrives. It goes to the caller that has waited longest, so that no task starves and no capacity is left unused.
type waitlist struct {
	mu    sync.Mutex
	lines map[string][]*waiter // by lineOf; each sorted by since
	since map[string]time.Time // by task key: when its wait began
}

type waiter struct {
	line    string
	key     string
	since   time.Time
	due     time.Time // when it acquires again, unless it gets a turn earlier
	refusal Refusal
	turn    chan struct{} // buffered
}

func newWaitlist() *waitlist {
	return &waitlist{lines: map[string][]*waiter{}, since: map[string]time.Time{}}
}

// lineOf returns the line of a caller. Callers of one line may take each other's turns.
func lineOf(r Request) string {
	return strings.Join([]string{string(r.Path), r.Group, r.Pinned, strings.Join(r.Exclude, ",")}, "|")
}

func (l *waitlist) join(r Request, refusal *Refusal) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	since, ok := l.since[r.Key]
	if !ok {
		l.pruneLocked()
		since = now
		l.since[r.Key] = now
	}
	w := &waiter{
		line: lineOf(r), key: r.Key, since: since, due: now.Add(refusal.RetryAfter), refusal: *refusal, turn: make(chan struct{}, 1),
	}
	at, _ := slices.BinarySearchFunc(l.lines[w.line], w, func(a, b *waiter) int { return a.since.Compare(b.since) })
	l.lines[w.line] = slices.Insert(l.lines[w.line], at, w)
	return w
}

const sinceMax = 10000 // tasks whose place in the order is kept

// pruneLocked deletes the places of tasks that do not wait, if there are too many.
func (l *waitlist) pruneLocked() {
	if len(l.since) < sinceMax {
		return
	}
	waiting := map[string]time.Time{}
	for _, line := range l.lines {
		for _, w := range line {
			waiting[w.key] = w.since
		}
	}
	l.since = waiting
}

// leave removes a waiter whose caller has given up.
func (l *waitlist) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(w)
	delete(l.since, w.key)
	select {
	case <-w.turn: // it got a turn at the same moment: pass it on
		l.wakeFirstLocked(w.line)
	default:
	}
}

func (l *waitlist) removeLocked(w *waiter) {
	if at := slices.Index(l.lines[w.line], w); at >= 0 {
		l.lines[w.line] = slices.Delete(l.lines[w.line], at, at+1)
	}
	if len(l.lines[w.line]) == 0 {
		delete(l.lines, w.line)
	}
}

// wakeLocked gives a turn to a waiter.
func (l *waitlist) wakeLocked(w *waiter) {
	l.removeLocked(w)
	w.turn <- struct{}{}
}

func (l *waitlist) wakeFirstLocked(line string) {
	if waiting := l.lines[line]; len(waiting) > 0 {
		l.wakeLocked(waiting[0])
	}
}

// takeTurn is called when the timer of w ends. The turn goes to the first of the line. It returns true if that is w. Else w
// waits until the due time of the first.
func (l *waitlist) takeTurn(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(w.turn) > 0 {
		return false // its turn is in the channel already
	}
	line := l.lines[w.line]
	if len(line) == 0 || line[0] == w {
		l.removeLocked(w)
		return true
	}
	first := line[0]
	l.wakeLocked(first)
	w.due = first.due
	if soonest := time.Now().Add(time.Millisecond); w.due.Before(soonest) {
		w.due = soonest
	}
	return false
}

// refuseNewcomer refuses a caller that has not waited while others of its line wait. If they wait for a rate, the first of
// them gets the newcomer's turn. If they wait for a permit, the end of a call wakes the first, and a second one would only
// compete with it.
func (l *waitlist) refuseNewcomer(r Request) *Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[lineOf(r)]
	if _, waited := l.since[r.Key]; waited || len(line) == 0 {
		return nil
	}
	refusal, due := line[0].refusal, line[0].due
	if refusal.Gate.isConcurrency() {
		due = line[len(line)-1].due.Add(10 * time.Millisecond)
	} else {
		l.wakeLocked(line[0])
	}
	refusal.RetryAfter = min(5*time.Second, max(time.Millisecond, time.Until(due)))
	return &refusal
}

// permitFreed wakes the caller that has waited longest for a permit of a path.
func (l *waitlist) permitFreed(path tasks.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest *waiter
	for name, line := range l.lines {
		if !strings.HasPrefix(name, string(path)+"|") {
			continue
		}
		i := slices.IndexFunc(line, func(w *waiter) bool { return w.refusal.Gate.isConcurrency() })
		if i >= 0 && (oldest == nil || line[i].since.Before(oldest.since)) {
			oldest = line[i]
		}
	}
	if oldest != nil {
		l.wakeLocked(oldest)
	}
}

// forget deletes the place of a task in the order.
func (l *waitlist) forget(key string) {
	l.mu.Lock()
	delete(l.since, key)
	l.mu.Unlock()
}
