package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

var (
	badToken = CallReport{Outcome: tasks.Authentication, Channel: tasks.ChannelAccount, Halt: "source"}
	noQuota  = CallReport{Outcome: tasks.Quota, Channel: tasks.ChannelAccount, Halt: "path"}
)

func withToken(fingerprint string) func(*Config) {
	return func(c *Config) { c.Sources = []SourceConfig{{Name: "main", Fingerprint: fingerprint}} }
}

func TestThreeAuthenticationFailuresInARowHaltTheSource(t *testing.T) {
	t.Parallel()
	b := newBench(t, withToken("old"))
	for i := range 2 {
		b.settle(b.acquire(request(keyOf(i))), badToken)
	}
	b.settle(b.acquire(request(keyOf(2))), done) // a success resets the count
	for i := range 3 {
		b.settle(b.acquire(request(keyOf(i))), badToken)
	}
	ref := b.refused(request(keyOf(5)))
	require.Equal(t, GateHalt, ref.Gate)
	r := request("upload_x")
	r.Path = tasks.Upload
	require.Equal(t, GateHalt, b.refused(r).Gate, "a refused token halts every path")
}

func TestNewTokenEndsAnAuthenticationHaltButTheRefusedTokenStaysBlocked(t *testing.T) {
	t.Parallel()
	b := newBench(t, withToken("old"))
	for i := range 3 {
		b.settle(b.acquire(request(keyOf(i))), badToken)
	}
	fresh := benchOn(t, b.rdb, withToken("new"))
	probe := fresh.acquire(request(keyOf(1)))
	require.True(t, probe.Probe)
	require.Equal(t, GateHalt, fresh.refused(request(keyOf(2))).Gate, "only one probe is admitted")
	fresh.settle(probe, done)
	fresh.settle(fresh.acquire(request(keyOf(2))), done)
	require.Equal(t, GateHalt, b.refused(request(keyOf(3))).Gate, "the worker with the refused token stays blocked")
	_, err := b.Resume(t.Context(), "main", "", "someone")
	require.NoError(t, err)
	b.acquire(request(keyOf(3)))
}

// Regression: two workers had refused tokens. Each ended the other's halt again and again, which caused one probe a
// second.
func TestEachRefusedTokenProbesOnceUntilAResume(t *testing.T) {
	t.Parallel()
	first := newBench(t, withToken("dead1"))
	second := benchOn(t, first.rdb, withToken("dead2"))
	for i := range 3 {
		first.settle(first.acquire(request(keyOf(i))), badToken)
	}
	probe := second.acquire(request(keyOf(3)))
	require.True(t, probe.Probe)
	second.settle(probe, badToken)
	for _, b := range []*bench{first, second} {
		ref := b.refused(request(keyOf(4)))
		require.Equal(t, GateHalt, ref.Gate)
		require.Equal(t, string(tasks.Authentication), ref.Reason)
		require.InDelta(t, 86400, ref.RetryAfter.Seconds(), about.Seconds(), "only an operator reopens it")
	}
	state, err := first.State(t.Context())
	require.NoError(t, err)
	for _, s := range state.Sources {
		require.ElementsMatch(t, []string{"dead2", "dead1"}, s.RefusedTokens, s.Path)
	}
	good := benchOn(t, first.rdb, withToken("good"))
	good.settle(good.acquire(request(keyOf(5))), done)
	require.Equal(t, GateHalt, first.refused(request(keyOf(6))).Gate, "a third token ends the halt for its own worker only")
	require.Equal(t, GateHalt, second.refused(request(keyOf(6))).Gate)
	_, err = first.Resume(t.Context(), "main", "", "someone")
	require.NoError(t, err)
	first.settle(first.acquire(request(keyOf(6))), done)
	second.acquire(request(keyOf(7)))
}

func TestQuotaHaltsThePathAndIsProbedEachHour(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.settle(b.acquire(request(keyOf(1))), noQuota)
	ref := b.refused(request(keyOf(2)))
	require.Equal(t, GateHalt, ref.Gate)
	require.True(t, ref.AllBlocked)
	require.InDelta(t, 3600, ref.RetryAfter.Seconds(), about.Seconds())
	b.age(time.Hour+time.Second, "halt_probe_at")
	probe := b.acquire(request(keyOf(2)))
	require.True(t, probe.Probe)
	b.settle(probe, noQuota)
	require.InDelta(t, 3600, b.refused(request(keyOf(2))).RetryAfter.Seconds(), about.Seconds())
	b.age(time.Hour+time.Second, "halt_probe_at")
	b.settle(b.acquire(request(keyOf(2))), done)
	require.Empty(t, b.field(mainRecognize, "halt_reason"))
}

func TestBlockedSourceIsProbedOnlyIfProbeable(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	maybe := CallReport{Outcome: tasks.Blocked, Channel: tasks.ChannelAccount, Halt: "source", Probeable: true}
	b.settle(b.acquire(request(keyOf(1))), maybe)
	require.InDelta(t, 300, b.refused(request(keyOf(2))).RetryAfter.Seconds(), about.Seconds())
	b.age(301*time.Second, "halt_probe_at")
	never := maybe
	never.Probeable = false
	b.settle(b.acquire(request(keyOf(2))), never)
	require.InDelta(t, 86400, b.refused(request(keyOf(3))).RetryAfter.Seconds(), about.Seconds(), "only an operator reopens it")
}

func TestResumeAdmitsOneProbeAndIgnoresEarlierCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	before := b.acquire(request(keyOf(0)))
	b.settle(b.acquire(request(keyOf(1))), noQuota)
	n, err := b.Resume(t.Context(), "main", tasks.Recognize, "ops")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	b.settle(before, noQuota)
	probe := b.acquire(request(keyOf(1)))
	require.True(t, probe.Probe)
	require.Equal(t, GateHalt, b.refused(request(keyOf(2))).Gate)
	b.settle(probe, done)
	b.acquire(request(keyOf(2)))
}

func TestOperatorHaltsASourceUntilAProbe(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	n, err := b.Halt(t.Context(), Halt{Source: "main", Reason: "maintenance window", By: "ops", ProbeAfter: time.Hour})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.InDelta(t, time.Hour, b.refused(request(keyOf(1))).RetryAfter, float64(about))
	require.Equal(t, "maintenance window", b.field(mainRecognize, "halt_reason"))
	_, err = b.Halt(t.Context(), Halt{Source: "main"})
	require.ErrorContains(t, err, "Reason")
}

func TestQuotaHaltFailsFastIfConfigured(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.QuotaFull = tasks.QuotaFailFast })
	b.settle(b.acquire(request(keyOf(1))), noQuota)
	ref := b.refused(request(keyOf(2)))
	require.Equal(t, string(tasks.Quota), ref.Reason)
	require.True(t, ref.FailFast)
}
