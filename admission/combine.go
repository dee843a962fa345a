package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The combiner gathers what many goroutines ask into one script call.
const (
	maxBatch   = 100                  // operations a call; keeps the script far below a millisecond per task
	busyOps    = 400                  // operations a second from which it pays to wait for company
	maxLinger  = 5 * time.Millisecond // how long to wait for it
	fullEnough = 48                   // operations that end the wait
)

// op is one settle or acquire on its way.
type op struct {
	settle bool
	path   string // of a settle
	args   []any
	done   chan answer  // buffered: the sender never waits
	state  atomic.Int32 // waiting, delivered or abandoned
	orphan func(answer) // what to do with the answer of an abandoned op; nil = nothing
}

const (
	opWaiting = iota
	opDelivered
	opAbandoned
)

type answer struct {
	entry any
	asked time.Time // before the request
	err   error
}

// combiner sends queued operations, a batch per call. It has no goroutine of
// its own: the first caller starts one, which ends when the queue is empty.
type combiner struct {
	send func(ops []*op) // fills every op's answer

	mu     sync.Mutex
	queue  []*op
	flying bool          // one call is under way at most: what is queued first is done first
	full   chan struct{} // a token wakes a lingering flight
	idle   sync.WaitGroup

	windowStart time.Time
	windowOps   int
	lastRate    float64 // operations a second in the last window
}

func newCombiner(send func([]*op)) *combiner {
	return &combiner{send: send, full: make(chan struct{}, 1)}
}

// do queues an operation and waits for its answer or the end of ctx.
func (c *combiner) do(ctx context.Context, o *op) answer {
	o.done = make(chan answer, 1)
	c.push(o)
	select {
	case a := <-o.done:
		return a
	case <-ctx.Done():
		if o.state.CompareAndSwap(opWaiting, opAbandoned) {
			return answer{err: ctx.Err()}
		}
		return <-o.done
	}
}

// push queues an operation nobody has to wait for.
func (c *combiner) push(o *op) {
	c.mu.Lock()
	c.queue = append(c.queue, o)
	c.countLocked(time.Now())
	start := !c.flying
	if start {
		c.flying = true
		c.idle.Add(1)
	}
	wake := len(c.queue) >= fullEnough
	c.mu.Unlock()
	if wake {
		select {
		case c.full <- struct{}{}:
		default:
		}
	}
	if start {
		go c.fly()
	}
}

func (c *combiner) countLocked(now time.Time) {
	c.windowOps++
	if age := now.Sub(c.windowStart); age >= 100*time.Millisecond {
		c.lastRate = 0
		if age < time.Second {
			c.lastRate = float64(c.windowOps) / age.Seconds()
		}
		c.windowStart, c.windowOps = now, 0
	}
}

func (c *combiner) fly() {
	defer c.idle.Done()
	for {
		c.linger()
		c.mu.Lock()
		n := min(len(c.queue), maxBatch)
		if n == 0 {
			c.flying = false
			c.mu.Unlock()
			return
		}
		batch := c.queue[:n:n]
		c.queue = c.queue[n:]
		c.mu.Unlock()
		c.send(batch)
	}
}

// linger waits for company, but only where much is asked: at low load it would
// be nothing but latency.
func (c *combiner) linger() {
	c.mu.Lock()
	rate, waiting := c.lastRate, len(c.queue)
	stale := time.Since(c.windowStart) > time.Second
	c.mu.Unlock()
	if rate < busyOps || stale || waiting >= fullEnough || waiting == 0 {
		return
	}
	timer := time.NewTimer(min(maxLinger, time.Duration(float64(fullEnough)/rate*float64(time.Second))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.full:
	}
}

// deliver hands an answer over, or to orphan if nobody waits any more.
func (o *op) deliver(a answer) {
	if o.done != nil && o.state.CompareAndSwap(opWaiting, opDelivered) {
		o.done <- a
		return
	}
	if o.orphan != nil {
		o.orphan(a)
	}
}

// wait returns when nothing is queued or under way.
func (c *combiner) wait() { c.idle.Wait() }
