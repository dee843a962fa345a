package admission

import (
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/tasks"
)

// waitlist puts the refused callers of this process in order. A turn to ask again (a
// caller's wait is over, a call has ended, a newcomer arrived) goes to the caller that
// has waited longest, so that no task starves and no capacity is left unused.
type waitlist struct {
	mu    sync.Mutex
	lines map[string][]*waiter // by lineOf; each sorted by since
	since map[string]time.Time // by task key: when its wait began
}

type waiter struct {
	key     string
	since   time.Time
	due     time.Time // when it asks again, unless it gets a turn earlier
	refusal Refusal
	turn    chan struct{} // buffered
}

func newWaitlist() *waitlist {
	return &waitlist{lines: map[string][]*waiter{}, since: map[string]time.Time{}}
}

// lineOf is what callers have in common that may take each other's turns.
func lineOf(r Request) string {
	return strings.Join([]string{string(r.Path), r.Group, r.Pinned, strings.Join(r.Exclude, ",")}, "|")
}

// isBusy reports whether the gate admits one more call with every call that ends or
// with passing time, unlike a gate that is blocked until a moment.
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
	name := lineOf(r)
	at, _ := slices.BinarySearchFunc(l.lines[name], w, func(a, b *waiter) int { return a.since.Compare(b.since) })
	l.lines[name] = slices.Insert(l.lines[name], at, w)
	return w
}

// pruneLocked forgets tasks that were refused and do not wait here.
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

const sinceMax = 10000 // tasks whose place in the order is remembered

// leave takes a waiter out; with forget it also loses its place in the order.
func (l *waitlist) leave(name string, w *waiter, forget bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveLocked(name, w)
	if forget {
		delete(l.since, w.key)
		select {
		case <-w.turn: // it got a turn at the same moment: pass it on
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

// takeTurn decides who gets the turn when the timer of w ends: the caller that has
// waited longest. If that is another one, w takes over the other's due time.
func (l *waitlist) takeTurn(name string, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(w.turn) > 0 {
		return false // its turn is in the channel already
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

// wakeLocked gives a turn to the first of a line that fits, and returns it; nil if none
// does.
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

// refuseNewcomer refuses a caller that has not waited while others wait for the same.
// Waiting for a rate, the first of them gets the newcomer's turn. Waiting for a permit,
// the end of a call has woken the first already, and two would race for one permit.
func (l *waitlist) refuseNewcomer(r Request) *Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := lineOf(r)
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

// permitFreed wakes the caller that has waited longest for a permit of a path.
func (l *waitlist) permitFreed(path tasks.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest *waiter
	var name string
	for n, list := range l.lines {
		if !strings.HasPrefix(n, string(path)+"|") {
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

// forget ends the place of a task in the order.
func (l *waitlist) forget(key string) {
	l.mu.Lock()
	delete(l.since, key)
	l.mu.Unlock()
}
