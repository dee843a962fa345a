package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

// fail acquires n permits and settles each with a failure.
func (b *bench) fail(n int) {
	b.t.Helper()
	for i := range n {
		b.settle(b.acquire(request(keyOf(i))), failed)
	}
}

// longCooldown keeps the breaker open until the test ends.
func longCooldown(c *Config) { c.Breaker.Cooldown, c.Breaker.CooldownMax = time.Hour, 24*time.Hour }

// cooled ends the breaker's cooldown.
func (b *bench) cooled() { b.set(mainRecognize, "breaker_probe_at", 1) }

func TestBreakerOpensForAllWorkersAfterFiveFailuresInARow(t *testing.T) {
	t.Parallel()
	b := newBench(t, longCooldown)
	other := benchOn(t, b.rdb, longCooldown)
	b.fail(4)
	other.settle(other.acquire(request(keyOf(9))), failed)
	ref := b.refused(request(keyOf(0)))
	require.Equal(t, GateBreaker, ref.Gate)
	require.True(t, ref.AllBlocked)
	require.InDelta(t, time.Hour, ref.RetryAfter, float64(about))
	require.Equal(t, GateBreaker, other.refused(request(keyOf(1))).Gate)
}

func TestBreakerStaysClosedWhileLessThanHalfOfTheCallsFail(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Breaker.Window = time.Hour })
	b.settle(b.acquire(request(keyOf(50))), done)
	b.fail(6)
	require.Zero(t, b.num(mainRecognize, "breaker_open"), "0.9^6 is more than half")
	b.fail(1)
	require.EqualValues(t, 1, b.num(mainRecognize, "breaker_open"))
}

func TestBreakerOpensIfTheLastSuccessIsTooOld(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.settle(b.acquire(request(keyOf(50))), done)
	b.age(time.Minute, "last_success_at")
	b.fail(5)
	require.EqualValues(t, 1, b.num(mainRecognize, "breaker_open"))
}

func TestFleetSendsOneProbePerCooldown(t *testing.T) {
	t.Parallel()
	b := newBench(t, longCooldown)
	other := benchOn(t, b.rdb, longCooldown)
	b.fail(5)
	b.cooled()
	probe := b.acquire(request(keyOf(10)))
	require.True(t, probe.Probe)
	require.Equal(t, GateBreaker, b.refused(request(keyOf(11))).Gate)
	ref := other.refused(request(keyOf(12)))
	require.Equal(t, GateBreaker, ref.Gate)
	require.Less(t, ref.RetryAfter, 6*time.Second, "the wait is short while a probe runs")

	b.settle(probe, failed)
	require.InDelta(t, 2*time.Hour, b.refused(request(keyOf(11))).RetryAfter, float64(about), "the cooldown doubles")
	b.cooled()
	probe = other.acquire(request(keyOf(11)))
	require.True(t, probe.Probe)
	other.settle(probe, late)
	p := b.acquire(request(keyOf(11)))
	require.False(t, p.Probe)
	require.Equal(t, GateConcurrency, b.refused(request(keyOf(12))).Gate, "concurrency ramps up from the floor")
	b.settle(p, late)
	b.acquire(request(keyOf(13)))
	b.acquire(request(keyOf(14)))
}

func TestNextCallProbesAfterTheProbesPermitExpires(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.fail(5)
	b.cooled()
	first := b.acquire(request(keyOf(10)))
	require.Equal(t, GateBreaker, b.refused(request(keyOf(11))).Gate)
	b.expire(first.Key)
	second := b.acquire(request(keyOf(11)))
	require.True(t, second.Probe)
	b.settle(first, done)
	require.EqualValues(t, 1, b.num(mainRecognize, "breaker_open"), "only the current probe decides")
	b.settle(second, done)
	require.Zero(t, b.num(mainRecognize, "breaker_open"))
}

// Regression: a task released its probe permit and then ran on another source. The probed source stayed blocked
// meanwhile.
func TestAnotherAttemptOfTheProbingTaskDoesNotProbe(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Sources = []SourceConfig{{Name: "main"}, {Name: "second"}} })
	pinned := func(i int, source string) Request {
		r := request(keyOf(i))
		r.Pinned = source
		return r
	}
	for i := range 5 {
		b.settle(b.acquire(pinned(i, "main")), failed)
	}
	for name, end := range map[string]func(*Permit){
		"given back": func(p *Permit) { b.settle(p, unused) },
		"crashed":    func(p *Permit) { b.expire(p.Key) },
	} {
		b.cooled()
		probe := b.acquire(pinned(10, "main"))
		require.True(t, probe.Probe, name)
		require.Equal(t, GateBreaker, b.refused(pinned(11, "main")).Gate, name)
		end(probe)
		elsewhere := b.acquire(pinned(10, "second"))
		next := b.acquire(pinned(11, "main"))
		require.True(t, next.Probe, name)
		b.settle(elsewhere, failed)
		require.Equal(t, GateBreaker, b.refused(pinned(12, "main")).Gate, name)
		b.settle(next, failed)
	}
}

func TestInconclusiveProbeLetsTheNextCallProbe(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.fail(5)
	b.cooled()
	b.settle(b.acquire(request(keyOf(10))), CallReport{Outcome: tasks.Interrupted, Channel: tasks.ChannelExcluded})
	require.True(t, b.acquire(request(keyOf(11))).Probe)
}

func TestReportsOfAnOldEpochAreIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	old := make([]*Permit, 8)
	for i := range old {
		old[i] = b.acquire(request(keyOf(i)))
	}
	for _, p := range old[:5] {
		b.settle(p, failed)
	}
	epoch := b.num(mainRecognize, "epoch")
	b.settle(old[5], failed)
	b.settle(old[6], done)
	account := CallReport{Outcome: tasks.Blocked, Channel: tasks.ChannelAccount, Halt: "source"}
	b.settle(old[7], account)
	require.Equal(t, epoch, b.num(mainRecognize, "epoch"))
	require.EqualValues(t, 1, b.num(mainRecognize, "breaker_open"))
	require.Empty(t, b.field(mainRecognize, "halt_reason"))
}

func TestThrottlesCutConcurrencyOnceAndDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	storm := throttled
	storm.RetryAfter = time.Hour
	held := make([]*Permit, 8)
	for i := range held {
		held[i] = b.acquire(request(keyOf(i)))
	}
	for _, p := range held {
		b.settle(p, storm)
	}
	require.Zero(t, b.num(mainRecognize, "breaker_open"))
	require.EqualValues(t, 6800, b.num(mainRecognize, "learned_concurrency_milli"), "8 × 0.85, once for eight throttles admitted before the cut")
	require.Equal(t, GateThrottle, b.refused(request(keyOf(9))).Gate)
	b.set(mainRecognize, "throttled_until", 1)
	for i := range 3 {
		b.set(mainRecognize, "throttled_until", 1)
		b.settle(b.acquire(request(keyOf(20+i))), throttled)
	}
	require.Less(t, b.num(mainRecognize, "learned_concurrency_milli"), int64(2000), "repeated throttles cut the limit further")
	require.GreaterOrEqual(t, b.num(mainRecognize, "learned_concurrency_milli"), int64(1000), "the limit stays at or above the floor")
}

func TestSlowStartDoublesUntilTheFirstThrottle(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	round := make([]*Permit, 8)
	for i := range round {
		round[i] = b.acquire(request(keyOf(i)))
	}
	for _, p := range round {
		b.settle(p, late) // within two latencies after the limit was reached
	}
	require.EqualValues(t, 16000, b.num(mainRecognize, "learned_concurrency_milli"))
	b.age(time.Hour, "limit_reached_at")
	before := b.num(mainRecognize, "learned_concurrency_milli")
	b.settle(b.acquire(request(keyOf(20))), done)
	require.Equal(t, before, b.num(mainRecognize, "learned_concurrency_milli"), "an unused limit does not grow")
}

func TestShorterThrottleDoesNotShortenALongerOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	long, short := throttled, throttled
	long.RetryAfter, short.RetryAfter = time.Hour, time.Minute
	p, q := b.acquire(request(keyOf(1))), b.acquire(request(keyOf(2)))
	b.settle(p, long)
	b.settle(q, short)
	ref := b.refused(request(keyOf(3)))
	require.Equal(t, GateThrottle, ref.Gate)
	require.InDelta(t, time.Hour, ref.RetryAfter, float64(about))
	require.True(t, ref.AllBlocked)
	_, err := b.Resume(t.Context(), "", "", "someone")
	require.NoError(t, err)
	require.Equal(t, GateThrottle, b.refused(request(keyOf(3))).Gate, "a resume does not end a throttle")
}

func TestThrottleWithoutRetryAfterLastsAboutACallsLatency(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.settle(b.acquire(request(keyOf(1))), done) // latency 200 ms
	p := b.acquire(request(keyOf(2)))
	before := time.Now().UnixMilli()
	b.settle(p, throttled)
	until := b.num(mainRecognize, "throttled_until")
	require.GreaterOrEqual(t, until, before+149)
	require.LessOrEqual(t, until, time.Now().UnixMilli()+151)
	b.set(mainRecognize, "throttled_until", until+time.Hour.Milliseconds())
	require.Equal(t, GateThrottle, b.refused(request(keyOf(3))).Gate)
}

func TestFive404sInARowHaltThePath(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for i := range 5 {
		b.settle(b.acquire(request(keyOf(i))), CallReport{Outcome: tasks.NotFound, Channel: tasks.ChannelExcluded})
	}
	ref := b.refused(request(keyOf(9)))
	require.Equal(t, GateHalt, ref.Gate)
	other := request("enterprise_x")
	other.Path = tasks.Enterprise
	_, err := b.Acquire(t.Context(), other)
	require.NoError(t, err, "other paths are not halted")
}
