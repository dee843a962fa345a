package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The batcher sends the operations of many goroutines in one script call.
const (
	maxBatch    = 100                  // operations a call; the script needs far less than a millisecond for each
	lingerFrom  = 400                  // operations a second from which lingering pays
	maxLinger   = 5 * time.Millisecond // how long a batch waits for more operations
	enoughToEnd = 48                   // operations that end the linger
)

// op is one settle or one acquire.
type op struct {
	settle    *settleRequest // either settle or acquire is set
	acquire   *acquireRequest
	done      chan opReply  // buffered: the sender never waits
	state     atomic.Int32  // opWaiting, opDelivered or opAbandoned
	abandoned func(opReply) // receives the reply if the caller does not wait for it
}

const (
	opWaiting = iota
	opDelivered
	opAbandoned
)

// opReply is the reply to one op.
type opReply struct {
	acquired acquireReply // to an acquire
	sentAt   time.Time    // before the request
	err      error
}

// batcher sends queued operations, a batch per call. The first caller starts its goroutine, which ends when the queue is
// empty.
type batcher struct {
	send func(ops []*op) // delivers the reply to every op

	mu       sync.Mutex
	queue    []*op
	flushing bool          // one call at a time: operations are sent in their order
	enough   chan struct{} // a token ends the linger
	idle     sync.WaitGroup

	windowStart time.Time
	windowOps   int
	lastRate    float64 // operations a second in the last window
}

func newBatcher(send func([]*op)) *batcher {
	return &batcher{send: send, enough: make(chan struct{}, 1)}
}

// do queues an operation and waits for its reply or the end of ctx.
func (b *batcher) do(ctx context.Context, o *op) opReply {
	o.done = make(chan opReply, 1)
	b.push(o)
	select {
	case reply := <-o.done:
		return reply
	case <-ctx.Done():
		if o.state.CompareAndSwap(opWaiting, opAbandoned) {
			return opReply{err: ctx.Err()}
		}
		return <-o.done
	}
}

// push queues an operation and does not wait for its reply.
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

// linger waits for more operations if many come per second. At a low rate it would only add latency.
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

// deliver gives the reply to the caller, or to abandoned if the caller does not wait.
func (o *op) deliver(reply opReply) {
	if o.done != nil && o.state.CompareAndSwap(opWaiting, opDelivered) {
		o.done <- reply
		return
	}
	if o.abandoned != nil {
		o.abandoned(reply)
	}
}
