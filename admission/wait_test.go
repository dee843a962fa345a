package admission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// admit acquires, waiting as a worker does.
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

func TestWhoWaitsLongestGoesFirst(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]Limits{"permits": {Concurrency: 2}, "rate": {RequestsPerMinute: 6000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, oneSource(limits))
			var wg sync.WaitGroup
			var finished, longest atomic.Int64
			for i := range 12 {
				wg.Go(func() {
					for k := range 12 {
						before := finished.Load()
						p, err := b.admit(t.Context(), request(keyOf(100*i+k)))
						if err != nil {
							t.Errorf("admit: %s", err)
							return
						}
						overtaken := finished.Load() - before
						for old := longest.Load(); overtaken > old && !longest.CompareAndSwap(old, overtaken); old = longest.Load() {
						}
						<-time.After(2 * time.Millisecond)
						b.SettleLater(p, done)
						finished.Add(1)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 144, finished.Load())
			require.LessOrEqual(t, longest.Load(), int64(30), "12 wait: nobody is overtaken by many")
		})
	}
}

func TestAWaiterIsWokenByACallThatEndsHere(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{Concurrency: 1}))
	p := b.acquire(request(keyOf(1)))
	r := request(keyOf(2))
	ref := b.refused(r)
	ref.RetryAfter = time.Minute
	woken := make(chan error, 1)
	go func() { woken <- b.Wait(t.Context(), r, ref) }()
	require.Eventually(t, func() bool {
		b.waiters.mu.Lock()
		defer b.waiters.mu.Unlock()
		return len(b.waiters.lines) == 1
	}, 5*time.Second, time.Millisecond)
	b.settle(p, done)
	require.NoError(t, <-woken)
	b.acquire(r)
}

func TestEndOfContextEndsTheWait(t *testing.T) {
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
