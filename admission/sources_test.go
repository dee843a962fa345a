package admission

import (
	"reprise/tasks"
	"testing"

	"github.com/stretchr/testify/require"
)

func twoSources(policy SourcePolicy) func(*Config) {
	return func(c *Config) {
		c.Sources = []SourceConfig{{Name: "a"}, {Name: "b"}}
		c.SourcePolicy = policy
	}
}

// share returns how many of n tasks each source got.
func (b *bench) share(n int) map[string]int {
	got := map[string]int{}
	for i := range n {
		p := b.acquire(request(keyOf(i)))
		got[p.Source]++
		b.settle(p, done)
	}
	return got
}

func TestHealthAwareGivesAnUnhealthySourceASmallShare(t *testing.T) {
	t.Parallel()
	b := newBench(t, twoSources(HealthAware))
	b.acquire(request("recognize_seed"))
	b.set("state:a:recognize", "health_milli", 300)
	got := b.share(1)
	b.set("state:a:recognize", "health_milli", 300)
	for range 200 {
		for source, n := range b.share(1) {
			got[source] += n
		}
		b.set("state:a:recognize", "health_milli", 300)
	}
	require.Greater(t, got["b"], 170)
	require.Positive(t, got["a"])
}

func TestHealthAwareSpreadsOverEqualSources(t *testing.T) {
	t.Parallel()
	got := newBench(t, twoSources(HealthAware)).share(100)
	require.Greater(t, got["a"], 25)
	require.Greater(t, got["b"], 25)
}

func TestRoundRobinTakesTurns(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]int{"a": 10, "b": 10}, newBench(t, twoSources(RoundRobin)).share(20))
}

func TestLeastInflightPicksTheLeastBusySource(t *testing.T) {
	t.Parallel()
	b := newBench(t, twoSources(LeastInflight))
	got := map[string]int{}
	for i := range 6 {
		got[b.acquire(request(keyOf(i))).Source]++
	}
	require.Equal(t, map[string]int{"a": 3, "b": 3}, got)
}

func TestBlockedSourceIsSkipped(t *testing.T) {
	t.Parallel()
	for _, policy := range []SourcePolicy{HealthAware, RoundRobin, LeastInflight} {
		b := newBench(t, twoSources(policy))
		_, err := b.Halt(t.Context(), Halt{Source: "a", Reason: "quota", By: "test"})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"b": 10}, b.share(10))
		_, err = b.Halt(t.Context(), Halt{Source: "b", Reason: "quota", By: "test"})
		require.NoError(t, err)
		require.True(t, b.refused(request(keyOf(1))).AllBlocked)
	}
}

func TestExcludedAndUnpinnedSourcesAreNotUsed(t *testing.T) {
	t.Parallel()
	b := newBench(t, twoSources(HealthAware))
	r := request(keyOf(1))
	r.Exclude = []string{"a"}
	require.Equal(t, "b", b.acquire(r).Source)
	r = request(keyOf(2))
	r.Pinned = "a"
	require.Equal(t, "a", b.acquire(r).Source)
	r = request(keyOf(3))
	r.Pinned, r.Exclude = "a", []string{"a"}
	ref := b.refused(r)
	require.Equal(t, GateNoCandidate, ref.Gate)
	require.True(t, ref.AllBlocked)
}

func TestSourceIsTriedLastAfterTwoFailuresOfTheTask(t *testing.T) {
	t.Parallel()
	b := newBench(t, twoSources(HealthAware))
	for range 2 {
		r := request("recognize_x")
		r.Pinned = "a"
		b.settle(b.acquire(r), failed)
	}
	for range 10 {
		p := b.acquire(request("recognize_x"))
		require.Equal(t, "b", p.Source)
		b.settle(p, CallReport{Outcome: throttled.Outcome, Channel: tasks.ChannelNone})
		require.NoError(t, b.rdb.HSet(t.Context(), b.key("state:b:recognize"), "throttled_until", 0).Err())
	}
}

func TestBusySourceIsNotBlocked(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		twoSources(HealthAware)(c)
		oneSource(Limits{Concurrency: 1})(c)
	})
	b.acquire(request(keyOf(1)))
	b.acquire(request(keyOf(2)))
	_, err := b.Halt(t.Context(), Halt{Source: "a", Reason: "quota", By: "test"})
	require.NoError(t, err)
	ref := b.refused(request(keyOf(3)))
	require.False(t, ref.AllBlocked)
	require.Equal(t, GateConcurrency, ref.Gate, "the source that admits first is named")
	require.Equal(t, "b", ref.Source)
}
