package intake

import (
	"context"
	"sync/atomic"
	"time"
)

// pace gives the inputs of a chunk their deadlines: putTimeout after the last
// one that was queued. A slow Redis is waited for as long as it goes on; one that
// is gone costs putTimeout once, not for each input. A deadline, because the
// queue's client obeys nothing else. Safe for concurrent use.
type pace struct {
	last atomic.Int64 // ns since begin
}

// begin makes moments of the monotonic clock.
var begin = time.Now()

func newPace() *pace {
	p := &pace{}
	p.went()
	return p
}

// went notes that one was queued.
func (p *pace) went() { p.last.Store(int64(time.Since(begin))) }

// next is the context of another one.
func (p *pace) next(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, begin.Add(time.Duration(p.last.Load())+putTimeout))
}
