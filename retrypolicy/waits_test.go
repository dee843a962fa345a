package retrypolicy

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestBackoffDoublesFromTwoSecondsToFiveMinutes(t *testing.T) {
	t.Parallel()
	p := Default()
	middles := []time.Duration{2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300}
	for i, m := range middles {
		n := i + 1
		assert.Equal(t, m*time.Second, p.Backoff(n, 0.5), "n=%d", n)
		assert.Equal(t, m*time.Second/2, p.Backoff(n, 0), "n=%d", n)
	}
	assert.Equal(t, 2*time.Second, p.Backoff(0, 0.5), "n below 1 is 1")
	assert.Equal(t, 300*time.Second, p.Backoff(math.MaxInt, 0.5))
}

func TestBackoffStaysWithinJitter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Default()
		n := rapid.IntRange(1, 10_000).Draw(t, "n")
		random := rapid.Float64Range(0, 0.999999).Draw(t, "random")
		middle := p.Backoff(n, 0.5)
		got := p.Backoff(n, random)
		if got < middle/2 || got >= middle*3/2 || middle > p.BackoffMax {
			t.Fatalf("Backoff(%d, %v) = %s, middle %s", n, random, got, middle)
		}
	})
}

func TestPushbackIsNeverShorterThanRetryAfter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		asked := time.Duration(rapid.Int64Min(1).Draw(t, "retry_after"))
		throttles := rapid.IntRange(-1, 1000).Draw(t, "throttles")
		random := rapid.Float64().Draw(t, "random")
		got := Default().pushback(throttles, asked, random)
		if got < asked {
			t.Fatalf("asked %s, got %s", asked, got)
		}
		if got-asked > time.Minute {
			t.Fatalf("asked %s, got %s: more than a minute of jitter", asked, got)
		}
	})
}

func TestPushbackWithoutRetryAfterDoubles(t *testing.T) {
	t.Parallel()
	p := Default()
	assert.Equal(t, 2*time.Second, p.pushback(1, 0, 0))
	assert.Equal(t, 3*time.Second, p.pushback(1, 0, math.Nextafter(1, 0)).Round(time.Microsecond))
	assert.Equal(t, 8*time.Second, p.pushback(3, 0, 0))
	assert.Equal(t, 5*time.Minute, p.pushback(99, -time.Second, 0))
}

func TestRandomOutsideItsRangeIsLimited(t *testing.T) {
	t.Parallel()
	p := Default()
	for _, random := range []float64{-1, math.NaN(), math.Inf(-1)} {
		assert.Equal(t, time.Second, p.Backoff(1, random))
	}
	for _, random := range []float64{1, 2, math.Inf(1)} {
		assert.Less(t, p.Backoff(1, random), 3*time.Second+1)
		assert.Greater(t, p.Backoff(1, random), 2999*time.Millisecond)
	}
}

func TestWholeSecondsRoundUpPlusOne(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want time.Duration }{
		{-time.Hour, time.Second},
		{0, time.Second},
		{1, 2 * time.Second},
		{time.Second, 2 * time.Second},
		{1001 * time.Millisecond, 3 * time.Second},
		{6 * time.Hour, 6*time.Hour + time.Second},
	} {
		assert.Equal(t, tc.want, WholeSeconds(tc.in), "%s", tc.in)
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "d"))
		got := WholeSeconds(d)
		if got%time.Second != 0 || got < time.Second {
			t.Fatalf("WholeSeconds(%d) = %d", d, got)
		}
		if d < math.MaxInt64-2*time.Second && got < d+time.Second {
			t.Fatalf("WholeSeconds(%s) = %s: asynq may be a second early", d, got)
		}
	})
}
