package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

func limit(scope, name, value string) []Limit {
	return []Limit{{Scope: scope, Name: name, Value: value}}
}

func TestLimitsChangeForEveryWorkerWithoutARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{Concurrency: 1}))
	other := benchOn(t, b.rdb, oneSource(Limits{Concurrency: 9})) // a different configuration
	b.acquire(request(keyOf(1)))
	require.Equal(t, GateConcurrency, other.refused(request(keyOf(2))).Gate, "the configuration only seeds limits")
	state, err := other.State(t.Context())
	require.NoError(t, err)
	first := state.Revision
	require.Positive(t, first)

	rev, err := b.SetLimits(t.Context(), limit("main:recognize", "concurrency", "2"), "ops lead")
	require.NoError(t, err)
	require.Equal(t, first+1, rev.Number)
	other.acquire(request(keyOf(2)))
	require.Equal(t, GateConcurrency, b.refused(request(keyOf(3))).Gate)

	_, err = other.SeedLimits(t.Context())
	require.NoError(t, err)
	inForce, rev, err := other.LimitsInForce(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ops lead", rev.By)
	require.Equal(t, first+1, rev.Number, "a seed without changes does not raise the revision")
	require.Contains(t, inForce, Limit{Scope: "main:recognize", Name: "concurrency", Value: "2"})
}

func TestInvalidLimitsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, l := range []Limit{
		{Scope: "main:recognize", Name: "speed", Value: "1"},
		{Scope: "other:recognize", Name: "concurrency", Value: "1"},
		{Scope: "global", Name: "concurrency", Value: "-1"},
		{Scope: "group/x", Name: "ceiling", Value: "1001"},
		{Scope: "group/x", Name: "source", Value: "unknown"},
		{Scope: "group/x y", Name: "ceiling", Value: "1"},
	} {
		_, err := b.SetLimits(t.Context(), []Limit{l}, "ops")
		require.Error(t, err, l)
	}
	_, err := b.SetLimits(t.Context(), limit("g", "concurrency", "1"), " ")
	require.ErrorContains(t, err, "by must be set")
}

func TestLimitsAreSeededAgainAfterDataLoss(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{Concurrency: 1}))
	b.acquire(request(keyOf(1)))
	require.NoError(t, b.rdb.FlushDB(t.Context()).Err())
	b.acquire(request(keyOf(2)))
	require.Equal(t, GateConcurrency, b.refused(request(keyOf(3))).Gate)
}

func backfill(name string) Request {
	r := request(name)
	r.Group = "backfill"
	return r
}

func TestGroupCeilingLimitsItsPermits(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		oneSource(Limits{Concurrency: 10})(c)
		c.AIMD.Off = true
		c.Groups = map[string]Group{"backfill": {Ceiling: 0.7}}
	})
	for i := range 7 {
		b.acquire(backfill(keyOf(i)))
	}
	require.Equal(t, GateGroupConcurrency, b.refused(backfill(keyOf(7))).Gate)
	for i := range 3 {
		b.acquire(request(keyOf(10 + i)))
	}
	require.Equal(t, GateConcurrency, b.refused(request(keyOf(20))).Gate)
}

func TestGroupCeilingLimitsItsRate(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		oneSource(Limits{RequestsPerMinute: 1})(c)
		c.Groups = map[string]Group{"backfill": {Ceiling: 0.5}}
	})
	b.settle(b.acquire(backfill(keyOf(1))), done)
	b.set(mainRecognize, "requests_arrival_us", 0)
	ref := b.refused(backfill(keyOf(2)))
	require.Equal(t, GateGroupRequests, ref.Gate)
	require.LessOrEqual(t, ref.RetryAfter, 2*time.Minute)
	require.Greater(t, ref.RetryAfter, time.Minute, "the wait is longer than without the ceiling")
	b.settle(b.acquire(request(keyOf(3))), done)
}

func TestGroupHasItsOwnBudgetAndSource(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		twoSources(HealthAware)(c)
		c.Groups = map[string]Group{"backfill": {UnitsPerDay: 3, Source: "b"}}
	})
	_, err := b.Acquire(t.Context(), backfill(keyOf(0)))
	var m *MissingPeriods
	require.ErrorAs(t, err, &m)
	require.Equal(t, "backfill", m.Periods[0].Group)
	b.seedAll(err, 1)
	for i := range 2 {
		p := b.acquire(backfill(keyOf(i)))
		require.Equal(t, "b", p.Source)
		b.settle(p, done)
	}
	require.Equal(t, GateGroupUnitsDay, b.refused(backfill(keyOf(3))).Gate)
	b.acquire(request(keyOf(4)))
}

func TestLimitsOfANewGroupCanBeSetAtRuntime(t *testing.T) {
	t.Parallel()
	b := newBench(t, oneSource(Limits{Concurrency: 10}))
	_, err := b.SetLimits(t.Context(), limit(ScopeOfGroup("backfill"), "ceiling", "100"), "ops")
	require.NoError(t, err)
	b.acquire(backfill(keyOf(1)))
	require.Equal(t, GateGroupConcurrency, b.refused(backfill(keyOf(2))).Gate)
}

func TestConfigurationNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	require.NoError(t, DefaultConfig().Validate())
	c := DefaultConfig()
	c.Paths = map[tasks.Path]Limits{tasks.Recognize: {Concurrency: 30, RequestBurst: 5, UnitsPerDay: 10, UnitsPerMonth: 5}}
	c.Global.Concurrency = 20
	c.PerSource = map[string]map[tasks.Path]Limits{"unknown": {}, "main": {tasks.Upload: {Concurrency: -3}}}
	c.Groups = map[string]Group{"x": {Ceiling: 1.5, Source: "unknown"}}
	c.AIMD.Start = 0
	c.Breaker.CooldownMax = 1
	c.RenewEvery = c.PermitTTL
	c.TimeZone = "Mars/Olympus"
	c.MonthAnchor = 31
	c.Prefix = "plain:"
	err := c.Validate()
	for _, both := range [][]string{
		{"limits.recognize.concurrency 30", "limits.global.concurrency 20"},
		{"limits.recognize.request_burst 5", "limits.recognize.requests_per_minute"},
		{"limits.recognize.units_per_day 10", "limits.recognize.units_per_month 5"},
		{"sources.unknown.limits: unknown source"}, {"sources.main.limits.upload.concurrency -3"},
		{"groups.x.ceiling 1.5"}, {`groups.x.source "unknown"`},
		{"aimd.start 0", "aimd.floor 1"}, {"breaker.cooldown_max", "breaker.cooldown 5s"},
		{"RenewEvery", "PermitTTL 12s"}, {"time_zone"}, {"month_anchor 31"}, {"Prefix"},
	} {
		for _, field := range both {
			require.ErrorContains(t, err, field)
		}
	}
}
