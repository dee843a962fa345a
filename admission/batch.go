package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The batcher sends what many goroutines ask in one script call.
const (
	maxBatch    = 100                  // operations a call; keeps the script far below a millisecond per task
	lingerFrom  = 400                  // operations a second from which lingering pays
	maxLinger   = 5 * time.Millisecond // how long a batch waits for more operations
	enoughToEnd = 48                   // operations that end the linger
)

// op is one settle or one acquire on its way.
type op struct {
	settle    *settleRequest // one of the two is set
	acquire   *acquireRequest
	done      chan answer  // buffered: the sender never waits
	state     atomic.Int32 // waiting, delivered or abandoned
	abandoned func(answer) // gets the answer if nobody waits for it
}

const (
	opWaiting = iota
	opDelivered
	opAbandoned
)

type answer struct {
	reply acquireReply // of an acquire
	asked time.Time    // before the request
	err   error
}

// batcher sends queued operations, a batch per call. It has no goroutine of
// its own: the first caller starts one, which ends when the queue is empty.
type batcher struct {
	send func(ops []*op) // fills every op's answer

	mu       sync.Mutex
	queue    []*op
	flushing bool          // at most one call is under way: what is queued first is done first
	enough   chan struct{} // a token ends the linger
	idle     sync.WaitGroup

	windowStart time.Time
	windowOps   int
	lastRate    float64 // operations a second in the last window
}

func newBatcher(send func([]*op)) *batcher {
	return &batcher{send: send, enough: make(chan struct{}, 1)}
}

// do queues an operation and waits for its answer or the end of ctx.
func (b *batcher) do(ctx context.Context, o *op) answer {
	o.done = make(chan answer, 1)
	b.push(o)
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

// push queues an operation without waiting for its answer.
func (b *batcher) push(o *op) {
	b.mu.Lock()
	b.queue = append(b.queue, o)
	b.countLocked(time.Now())
	start := !b.flushing
	if start {
		b.flushing = true
		b.idle.Add(1)
	}
	wake := len(b.queue) >= enoughToEnd
	b.mu.Unlock()
	if wake {
		select {
		case b.enough <- struct{}{}:
		default:
		}
	}
	if start {
		go b.flush()
	}
}

func (b *batcher) countLocked(now time.Time) {
	b.windowOps++
	if age := now.Sub(b.windowStart); age >= 100*time.Millisecond {
		b.lastRate = 0
		if age < time.Second {
			b.lastRate = float64(b.windowOps) / age.Seconds()
		}
		b.windowStart, b.windowOps = now, 0
	}
}

func (b *batcher) flush() {
	defer b.idle.Done()
	for {
		b.linger()
		b.mu.Lock()
		n := min(len(b.queue), maxBatch)
		if n == 0 {
			b.flushing = false
			b.mu.Unlock()
			return
		}
		batch := b.queue[:n:n]
		b.queue = b.queue[n:]
		b.mu.Unlock()
		b.send(batch)
	}
}

// linger waits for more operations, but only under load: otherwise it would only add
// latency.
func (b *batcher) linger() {
	b.mu.Lock()
	rate, waiting := b.lastRate, len(b.queue)
	stale := time.Since(b.windowStart) > time.Second
	b.mu.Unlock()
	if rate < lingerFrom || stale || waiting >= enoughToEnd || waiting == 0 {
		return
	}
	timer := time.NewTimer(min(maxLinger, time.Duration(float64(enoughToEnd)/rate*float64(time.Second))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.enough:
	}
}

// deliver sends the answer to the caller, or to abandoned if the caller is gone.
func (o *op) deliver(a answer) {
	if o.done != nil && o.state.CompareAndSwap(opWaiting, opDelivered) {
		o.done <- a
		return
	}
	if o.abandoned != nil {
		o.abandoned(a)
	}
}

// wait returns when nothing is queued or under way.
func (b *batcher) wait() { b.idle.Wait() }
