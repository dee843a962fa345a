package admission

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// waitlist puts the refused callers of this process in order. Whoever gets a
// turn to ask (its own time has come, a call has ended, a newcomer arrived)
// hands it to the one that has waited longest, so that no task starves while
// others pass and no capacity is lost.
type waitlist struct {
	mu    sync.Mutex
	lines map[string][]*waiter // by what they wait for; each sorted by since
	since map[string]time.Time // by task key: when its wait began
}

type waiter struct {
	key     string
	since   time.Time
	due     time.Time // when its own turn comes
	refusal Refusal
	turn    chan struct{} // buffered
}

func newWaitlist() *waitlist {
	return &waitlist{lines: map[string][]*waiter{}, since: map[string]time.Time{}}
}

// line is what callers must have in common to stand in for one another.
func line(r Request) string {
	return strings.Join([]string{string(r.Path), r.Group, r.Pinned, strings.Join(r.Exclude, ",")}, "|")
}

// Wait waits until it makes sense to Acquire again after a refusal, or until
// ctx ends. Callers that wait here take turns: first come, first served within
// this process. That may be earlier than Refusal.RetryAfter says.
func (g *Gates) Wait(ctx context.Context, r Request, refusal *Refusal) error {
	if !refusal.Gate.isBusy() {
		// A shut gate opens for everybody at once; do not come in one herd.
		return pause(ctx, refusal.RetryAfter+rand.N(min(refusal.RetryAfter/10, 500*time.Millisecond)+1))
	}
	l := g.waiters
	w := l.join(r, refusal)
	timer := time.NewTimer(time.Until(w.due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			l.leave(line(r), w, true)
			return ctx.Err()
		case <-w.turn:
			return nil
		case <-timer.C:
			if l.mine(line(r), w) {
				return nil
			}
			timer.Reset(time.Until(w.due))
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isBusy says whether the gate opens a little with every call that ends or
// with every moment, as opposed to one that is shut until a time.
func (g Gate) isBusy() bool { return slices.Contains(busyGates, g) }

var busyGates = []Gate{
	GateConcurrency, GateRequests, GateUnits, GateGlobalConcurrency, GateGlobalRequests, GateGlobalUnits, GateGroupConcurrency, GateGroupRequests,
}

func (l *waitlist) join(r Request, refusal *Refusal) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	since, ok := l.since[r.Key]
	if !ok {
		since = now
		l.since[r.Key] = now
		l.pruneLocked()
	}
	w := &waiter{key: r.Key, since: since, due: now.Add(refusal.RetryAfter), refusal: *refusal, turn: make(chan struct{}, 1)}
	name := line(r)
	at, _ := slices.BinarySearchFunc(l.lines[name], w, func(a, b *waiter) int { return a.since.Compare(b.since) })
	l.lines[name] = slices.Insert(l.lines[name], at, w)
	return w
}

// pruneLocked forgets tasks that were refused once and never came back here.
func (l *waitlist) pruneLocked() {
	waiting := map[string]bool{}
	if len(l.since) < sinceMax {
		return
	}
	for _, list := range l.lines {
		for _, w := range list {
			waiting[w.key] = true
		}
	}
	for key := range l.since {
		if !waiting[key] {
			delete(l.since, key)
		}
	}
}

const sinceMax = 10000 // tasks whose place is remembered

// leave takes a waiter out; forget also ends its place in the order.
func (l *waitlist) leave(name string, w *waiter, forget bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveLocked(name, w)
	if forget {
		delete(l.since, w.key)
		select {
		case <-w.turn: // a turn came in the same moment: it must not be lost
			l.wakeLocked(name, nil)
		default:
		}
	}
}

func (l *waitlist) leaveLocked(name string, w *waiter) {
	if at := slices.Index(l.lines[name], w); at >= 0 {
		l.lines[name] = slices.Delete(l.lines[name], at, at+1)
	}
	if len(l.lines[name]) == 0 {
		delete(l.lines, name)
	}
}

// mine decides whose turn a timer is. The one that has waited longest goes; if
// that is another, the waiter takes over the other's time.
func (l *waitlist) mine(name string, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(w.turn) > 0 {
		return false // the turn is in the channel already
	}
	if list := l.lines[name]; len(list) == 0 || list[0] == w {
		l.leaveLocked(name, w)
		return true
	}
	first := l.wakeLocked(name, nil)
	w.due = first.due
	if soonest := time.Now().Add(time.Millisecond); w.due.Before(soonest) {
		w.due = soonest
	}
	return false
}

// wakeLocked gives a turn to the first of a line that fits; nil if none does.
func (l *waitlist) wakeLocked(name string, fits func(*waiter) bool) *waiter {
	for _, w := range l.lines[name] {
		if fits == nil || fits(w) {
			l.leaveLocked(name, w)
			w.turn <- struct{}{}
			return w
		}
	}
	return nil
}

// stepBack is a newcomer's turn while others wait for the same: it is refused
// in their place. At a rate the first of them gets its turn; at permits an
// ended call has woken the first already, and two would race for one permit.
func (l *waitlist) stepBack(r Request) *Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := line(r)
	list := l.lines[name]
	if _, waited := l.since[r.Key]; waited || len(list) == 0 {
		return nil
	}
	refusal, due := list[0].refusal, list[0].due
	if refusal.Gate.isConcurrency() {
		due = list[len(list)-1].due.Add(10 * time.Millisecond)
	} else {
		l.wakeLocked(name, nil)
	}
	refusal.RetryAfter = min(5*time.Second, max(time.Millisecond, time.Until(due)))
	return &refusal
}

// ended says that a call of a path has ended: a permit is free.
func (l *waitlist) ended(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest *waiter
	var name string
	for n, list := range l.lines {
		if !strings.HasPrefix(n, path+"|") {
			continue
		}
		for _, w := range list {
			if w.refusal.Gate.isConcurrency() {
				if oldest == nil || w.since.Before(oldest.since) {
					oldest, name = w, n
				}
				break
			}
		}
	}
	if oldest != nil {
		l.wakeLocked(name, func(w *waiter) bool { return w == oldest })
	}
}

func (g Gate) isConcurrency() bool {
	return g == GateConcurrency || g == GateGlobalConcurrency || g == GateGroupConcurrency
}

// over ends a key's place in the order.
func (l *waitlist) over(key string) {
	l.mu.Lock()
	delete(l.since, key)
	l.mu.Unlock()
}
