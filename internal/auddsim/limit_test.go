package auddsim

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Between any two admissions a time t apart, at most rate × t + burst requests pass.
func TestTokenBucketNeverAdmitsMoreThanRateTimesTPlusBurst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.5, 5000).Draw(t, "rate")
		burst := rapid.IntRange(0, 20).Draw(t, "burst")
		l := newLimiter(Limits{Rate: rate, Burst: burst})
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var admitted []time.Duration
		now := time.Duration(0)
		for range 1000 {
			now += time.Duration(rng.ExpFloat64() * 0.3 * float64(time.Second) / rate)
			if l.takeLocked(now) {
				admitted = append(admitted, now)
			}
		}
		for i := range admitted {
			for j := i; j < len(admitted) && j < i+60; j++ {
				allowed := rate*(admitted[j]-admitted[i]).Seconds() + float64(max(burst, 1))
				if float64(j-i+1) > allowed+1e-6 {
					t.Fatalf("%d requests within %s, allowed %f", j-i+1, admitted[j]-admitted[i], allowed)
				}
			}
		}
		// Random arrivals at 3.3 times the rate: even without a bucket, 1/1.3 of the rate is admitted.
		if want := rate*now.Seconds()*0.7 - 10; float64(len(admitted)) < want {
			t.Fatalf("%d requests admitted, want at least %f", len(admitted), want)
		}
	})
}

func TestRateLimitSends429AndKeepsTheConnection(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Limits: Limits{Rate: 0.001, Burst: 5, RetryAfter: 1500 * time.Millisecond}})
	client := newClient(t)
	for i := range 20 {
		r := do(client, clip("a.mp3", itoa(i)).request(t, s.URL))
		require.NoError(t, r.err)
		if i < 5 {
			require.Equal(t, 200, r.status)
			continue
		}
		require.Equal(t, http.StatusTooManyRequests, r.status)
		require.Equal(t, "2", r.header.Get("Retry-After"), "whole seconds, rounded up")
	}
	b := s.Bill()
	require.EqualValues(t, 5, b.Units)
	require.EqualValues(t, 15, b.HTTP429)
	require.EqualValues(t, 15, b.Refused)
	require.EqualValues(t, 15, b.Outcomes[OutcomeRefused])
	require.EqualValues(t, 20, b.Complete, "refused requests are read to their end")
	require.EqualValues(t, 1, b.Content(PathRecognize, hashOf("19")).Requests)

	require.Equal(t, 200, admin(t, s, "POST", "limits", `{"rate":0,"latency":"1ms"}`, nil))
	require.Equal(t, 200, do(client, clip("a.mp3", "x").request(t, s.URL)).status)
	require.Equal(t, 1500*time.Millisecond, s.Limits("").RetryAfter, "other limits do not change")
	require.Equal(t, 400, admin(t, s, "POST", "limits", `{"rat":1}`, nil))
	require.Equal(t, 400, admin(t, s, "POST", "limits", `{"rate":-1}`, nil))
}

func TestLimitsWithACodeRefuseWithThatCode(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Limits: Limits{Rate: 0.001, Code: 611}})
	require.Zero(t, send(t, s, clip("a.mp3", "x")).code(t))
	r := send(t, s, clip("a.mp3", "x"))
	require.Equal(t, 200, r.status)
	require.Equal(t, 611, r.code(t))
	require.EqualValues(t, 1, s.Bill().Code611)
	require.NoError(t, s.SetLimits("", Limits{Rate: 0.001, Code: 611, Status: 429}))
	r = send(t, s, clip("a.mp3", "x"))
	require.Equal(t, 429, r.status)
	require.Equal(t, 611, r.code(t))
}

func TestPathsCanHaveTheirOwnLimits(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Limits: Limits{Rate: 0.001}})
	require.NoError(t, s.SetLimits(PathUpload, Limits{}))
	for i := range 5 {
		require.Equal(t, 200, send(t, s, upload(i, "x")).status)
	}
	require.Equal(t, 200, send(t, s, clip("a.mp3", "x")).status)
	require.Equal(t, 429, send(t, s, clip("a.mp3", "x")).status)
	streams := clip("", "")
	streams.path = "/getStreams/"
	require.Equal(t, 200, send(t, s, streams).status, "the token check is never limited")
}

func TestConcurrencyLimitRefusesFurtherRequests(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Limits: Limits{Concurrency: 4}})
	id := s.Hold(Hold{Stage: StageBeforeAnswer})
	client := newClient(t)
	var wg sync.WaitGroup
	var refused, served atomic.Int64
	for i := range 4 {
		wg.Go(func() {
			if do(client, clip("a.mp3", itoa(i)).request(t, s.URL)).status == 200 {
				served.Add(1)
			}
		})
	}
	_, err := s.WaitHeld(t.Context(), 4)
	require.NoError(t, err)
	for range 3 {
		if do(client, clip("a.mp3", "more").request(t, s.URL)).status == 429 {
			refused.Add(1)
		}
	}
	s.Release(id)
	wg.Wait()
	require.EqualValues(t, 4, served.Load())
	require.EqualValues(t, 3, refused.Load())
	require.EqualValues(t, 4, s.Bill().MaxConcurrent)
	require.EqualValues(t, 4, s.Bill().MaxConcurrentByPath[PathRecognize])
}

// A concurrency limit of N never refuses N clients that send their next request after they have read a response.
func TestNextRequestIsAdmittedWhenAResponseHasArrived(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Limits: Limits{Concurrency: 3}, Rules: []Rule{{Name: "slow*", Fault: FaultSlowAnswer, Over: 5 * time.Millisecond}}})
	client := newClient(t)
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 200 {
				name := "a.mp3"
				if w == 0 && i%4 == 0 {
					name = "slow.mp3"
				}
				do(client, clip(name, itoa(i)).request(t, s.URL))
			}
		})
	}
	wg.Wait()
	b := s.Bill()
	require.Zero(t, b.HTTP429)
	require.EqualValues(t, 600, b.Units)
}

func TestLatencyIsDrawnEvenlyFromItsRange(t *testing.T) {
	t.Parallel()
	l := Limits{Latency: 200 * time.Millisecond, Jitter: 0.2}
	var sum time.Duration
	low, high := time.Hour, time.Duration(0)
	for n := range int64(10_000) {
		d := l.draw(7, n)
		require.Equal(t, d, l.draw(7, n), "seeded")
		sum, low, high = sum+d, min(low, d), max(high, d)
	}
	require.InDelta(t, 200, float64(sum.Milliseconds())/10_000, 2)
	require.GreaterOrEqual(t, low, 160*time.Millisecond)
	require.LessOrEqual(t, high, 240*time.Millisecond)
	require.Greater(t, high-low, 75*time.Millisecond)
}

func TestRequestRefusedByTheConcurrencyLimitTakesNoToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limits{Rate: 1, Burst: 2, Concurrency: 1})
		_, ok := l.admit()
		require.True(t, ok)
		for range 5 {
			_, ok = l.admit()
			require.False(t, ok, "no place")
		}
		l.leave()
		_, ok = l.admit()
		require.True(t, ok, "the refusals took no token")
		l.leave()
		_, ok = l.admit()
		require.False(t, ok, "the bucket is empty")
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		_, ok = l.admit()
		require.True(t, ok)
	})
}

func TestChangedRateFillsTheBucketAtTheNewRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(Limits{Rate: 0.001, Burst: 2})
		admitted := func() (n int) {
			for range 10 {
				if _, ok := l.admit(); ok {
					n++
				}
			}
			return n
		}
		require.Equal(t, 2, admitted())
		l.set(Limits{Rate: 10, Burst: 2})
		require.Zero(t, admitted(), "a new rate does not refill the bucket")
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the bubble's clock
		require.Equal(t, 1, admitted())
		time.Sleep(time.Hour) //nolint:forbidigo // the bubble's clock
		require.Equal(t, 2, admitted())
	})
}
