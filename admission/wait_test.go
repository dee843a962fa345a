package admission

import (
	"context"
	"errors"
	"reprise/internal/proctest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// admit acquires a permit. It waits after each refusal, as a worker does.
func (b *bench) admit(ctx context.Context, r Request) (*Permit, error) {
	for {
		p, err := b.Acquire(ctx, r)
		var ref *Refusal
		if !errors.As(err, &ref) {
			return p, err
		}
		if err := b.Wait(ctx, r, ref); err != nil {
			return nil, err
		}
	}
}

// lineUp starts a task that waits after a refusal and sends its key to turns when it is admitted.
func (b *bench) lineUp(turns chan<- string, key string, refusal Refusal) {
	go func() {
		if b.Wait(b.t.Context(), request(key), &refusal) == nil {
			turns <- key
		}
	}()
	proctest.Eventually(b.t, func() bool {
		b.waiters.mu.Lock()
		defer b.waiters.mu.Unlock()
		_, ok := b.waiters.since[key]
		return ok
	})
}

func next(t *testing.T, turns <-chan string) string {
	t.Helper()
	return proctest.Receive(t, turns, "no waiter got a turn")
}

func TestLongestWaiterGetsTheNextPermit(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{Concurrency: 1}))
	running := b.acquire(request("recognize_first"))
	const waiting = 5
	turns := make(chan string, waiting)
	for i := range waiting {
		b.lineUp(turns, keyOf(i), Refusal{Gate: GateConcurrency, RetryAfter: time.Hour})
	}
	for i := range waiting {
		b.settle(running, done)
		require.Equal(t, keyOf(i), next(t, turns))
		if i < waiting-1 {
			require.Equal(t, GateConcurrency, b.refused(request("recognize_newcomer")).Gate, "the free permit is for the first waiter")
		}
		running = b.acquire(request(keyOf(i)))
	}
	require.Empty(t, turns)
}

func TestLongestWaiterIsFirstAtARateLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	turns := make(chan string, 3)
	for i, after := range []time.Duration{time.Hour, time.Hour, time.Millisecond} {
		b.lineUp(turns, keyOf(i), Refusal{Gate: GateRequests, RetryAfter: after})
	}
	require.Equal(t, keyOf(0), next(t, turns), "the timer of the last waiter wakes the first")
	for i := 1; i < 3; i++ {
		require.Equal(t, GateRequests, b.refused(request("recognize_newcomer")).Gate)
		require.Equal(t, keyOf(i), next(t, turns), "the first waiter gets the newcomer's turn")
	}
	require.Empty(t, turns)
}

func TestEveryWaiterIsAdmitted(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]Limits{"permits": {Concurrency: 2}, "rate": {RequestsPerMinute: 6000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, oneSource(limits))
			var wg sync.WaitGroup
			var finished atomic.Int64
			for i := range 12 {
				wg.Go(func() {
					for k := range 12 {
						p, err := b.admit(t.Context(), request(keyOf(100*i+k)))
						if err != nil {
							t.Errorf("admit: %s", err)
							return
						}
						proctest.Pass(2 * time.Millisecond) // stands for the call
						b.SettleLater(p, done)
						finished.Add(1)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 144, finished.Load())
		})
	}
}

func TestSettleWakesAWaiter(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{Concurrency: 1}))
	p := b.acquire(request(keyOf(1)))
	r := request(keyOf(2))
	ref := b.refused(r)
	ref.RetryAfter = time.Minute
	woken := make(chan error, 1)
	go func() { woken <- b.Wait(t.Context(), r, ref) }()
	proctest.Eventually(t, func() bool {
		b.waiters.mu.Lock()
		defer b.waiters.mu.Unlock()
		return len(b.waiters.lines) == 1
	})
	b.settle(p, done)
	require.NoError(t, <-woken)
	b.acquire(r)
}

func TestCancelEndsTheWait(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{Concurrency: 1}))
	b.acquire(request(keyOf(1)))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := b.admit(ctx, request(keyOf(2)))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, b.waiters.lines)
	require.Empty(t, b.waiters.since)
	require.ErrorIs(t, b.Wait(ctx, request(keyOf(3)), &Refusal{Gate: GateHalt, RetryAfter: time.Hour}), context.DeadlineExceeded)
}
