package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

// race acquires permits as fast as possible from many goroutines of several workers. It returns the number of
// admitted calls and the elapsed time.
func race(t *testing.T, workers []*bench, goroutines int, length time.Duration) (admitted int64, took time.Duration) {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	for i := range goroutines {
		w := workers[i%len(workers)]
		wg.Go(func() {
			for ctx.Err() == nil {
				p, err := w.Acquire(ctx, request(keyOf(i)))
				var ref *Refusal
				switch {
				case err == nil:
					n.Add(1)
					w.SettleLater(p, done)
				case errors.As(err, &ref):
					select {
					case <-ctx.Done():
					case <-time.After(ref.RetryAfter):
					}
				}
			}
		})
	}
	wg.Wait()
	return n.Load(), time.Since(begin)
}

func TestWorkersTogetherDoNotExceedARate(t *testing.T) {
	t.Parallel()
	limits := func(c *Config) {
		c.AIMD.Off = true
		c.Paths = map[tasks.Path]Limits{tasks.Recognize: {RequestsPerMinute: 12000, RequestBurst: 5}} // 200/s
	}
	b := newBench(t, limits)
	admitted, took := race(t, []*bench{b, benchOn(t, b.rdb, limits)}, 32, 2*time.Second)
	require.LessOrEqual(t, float64(admitted), 200*took.Seconds()+5)
	require.Greater(t, admitted, int64(5), "more than the burst") // the number depends on the machine
}

// After the burst each interval admits one call, even if others were refused in between.
func TestRefusalsDoNotWasteRateCapacity(t *testing.T) {
	t.Parallel()
	limits := oneSource(Limits{RequestsPerMinute: 1, RequestBurst: 5})
	b := newBench(t, limits)
	workers := []*bench{b, benchOn(t, b.rdb, limits)}
	for i := range 5 {
		b.settle(b.acquire(request(keyOf(i))), done)
	}
	for i := range 20 {
		asker, other := workers[i%2], workers[(i+1)%2]
		for k := range 3 {
			require.Equal(t, GateRequests, other.refused(request(keyOf(100+3*i+k))).Gate)
		}
		b.set(mainRecognize, "requests_arrival_us", b.num(mainRecognize, "requests_arrival_us")-60e6) // an interval passes
		asker.settle(asker.acquire(request(keyOf(5+i))), done)
	}
	require.Equal(t, GateRequests, b.refused(request(keyOf(99))).Gate)
}

func TestUnitRateChargesACallsUnits(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerMinute: 1, UnitBurst: 10}))
	r := request(keyOf(1))
	r.Units = 10
	p := b.acquire(r)
	r = request(keyOf(2))
	r.Units = 5
	ref := b.refused(r)
	require.Equal(t, GateUnits, ref.Gate)
	require.InDelta(t, 5*time.Minute, ref.RetryAfter, float64(about))
	s := done
	s.UnitsUsed = 2
	b.settle(p, s) // 8 units are refunded
	b.acquire(r)
}

func TestCallLargerThanTheBurstWaitsForTheWholeBurst(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerMinute: 1, UnitBurst: 10}))
	r := request(keyOf(1))
	r.Units = 30
	b.acquire(r)
	ref := b.refused(request(keyOf(2)))
	require.LessOrEqual(t, ref.RetryAfter, 21*time.Minute, "30 units minus the burst of 10, and one interval")
	require.Greater(t, ref.RetryAfter, 20*time.Minute)
}

func TestUnitsAreNotRefundedAfterTheRateWasIdle(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{UnitsPerMinute: 1, UnitBurst: 10}))
	r := request(keyOf(1))
	r.Units = 10
	p := b.acquire(r)
	b.set(mainRecognize, "units_arrival_us", b.num(mainRecognize, "units_arrival_us")-600e6) // ten minutes pass, and the whole burst is free again
	r = request(keyOf(2))
	r.Units = 10
	b.acquire(r)
	b.settle(p, CallReport{Outcome: tasks.Interrupted, Channel: tasks.ChannelNone})
	require.Equal(t, GateUnits, b.refused(request(keyOf(3))).Gate)
}

func TestRefusedCallersGetSuccessivePlaces(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{RequestsPerMinute: 15}))
	b.acquire(request(keyOf(0)))
	var last time.Time // earliest start time of the last refused caller
	for i := range 5 {
		asked := time.Now()
		ref := b.refused(request(keyOf(i + 1)))
		require.Equal(t, GateRequests, ref.Gate)
		if i > 0 {
			require.Greater(t, time.Now().Add(ref.RetryAfter).Sub(last), 3900*time.Millisecond)
		}
		last = asked.Add(ref.RetryAfter)
	}
}

func TestClockStepDoesNotStopTheFleet(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{RequestsPerMinute: 60}))
	b.settle(b.acquire(request(keyOf(1))), done)
	year := time.Now().AddDate(1, 0, 0)
	b.set(mainRecognize, "requests_arrival_us", year.UnixMicro(), "throttled_until", year.UnixMilli(), "requests_place_us", year.UnixMicro(), "breaker_open", 1, "breaker_probe_at", year.UnixMilli())
	b.settle(b.acquire(request(keyOf(2))), done)
	b.set(mainRecognize, "halt_reason", "quota", "halt_probe_at", year.UnixMilli(), "cut_at", year.UnixMilli(), "requests_arrival_us", 0)
	b.settle(b.acquire(request(keyOf(3))), done)
	require.NoError(t, b.rdb.ZAdd(t.Context(), b.key("permits"), redis.Z{Member: "recognize_ghost", Score: float64(year.UnixMilli())}).Err())
	require.NoError(t, b.renew(t.Context(), true))
	ends, err := b.rdb.ZScore(t.Context(), b.key("permits"), "recognize_ghost").Result()
	require.NoError(t, err)
	require.Less(t, ends, float64(time.Now().Add(time.Minute).UnixMilli()))
}

// Regression: a call's start was rounded to a time before the rate was idle, so nothing was refunded.
func TestUnitsAreRefundedAfterAFractionalInterval(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		b := newBench(t, func(c *Config) {
			c.Paths = map[tasks.Path]Limits{tasks.Recognize: {RequestsPerMinute: 7000, RequestBurst: 2, UnitsPerMinute: 600, UnitBurst: 600}}
			c.Prefix = fmt.Sprintf("x%d{adm}:", i)
		})
		for k := range 4 { // uses up the burst, so the next call starts a fraction of an interval later
			b.settle(b.acquire(request(keyOf(k))), unused)
		}
		require.NoError(t, b.rdb.HDel(t.Context(), b.key(mainRecognize), "units_arrival_us", "units_idle_us").Err())
		r := request(keyOf(9))
		r.Units = 500
		p := b.acquire(r)
		taken := b.num(mainRecognize, "units_arrival_us")
		b.settle(p, unused)
		require.EqualValues(t, 50*time.Second/time.Microsecond, taken-b.num(mainRecognize, "units_arrival_us"))
	}
}
