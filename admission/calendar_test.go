package admission

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestPeriodsFollowTheTimeZoneAndTheMonthAnchor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		zone       string
		anchor     int
		now        string
		day, month string // the current day and month
		dayHours   float64
		monthStart string
	}{
		"a day in UTC":                              {"UTC", 1, "2026-11-30T23:59:59Z", "2026-11-30", "2026-11", 24, "2026-11-01T00:00:00Z"},
		"the first moment of a day":                 {"UTC", 1, "2026-12-01T00:00:00Z", "2026-12-01", "2026-12", 24, "2026-12-01T00:00:00Z"},
		"another zone has another day":              {"Pacific/Auckland", 1, "2026-11-30T12:00:00Z", "2026-12-01", "2026-12", 24, "2026-12-01T00:00:00+13:00"},
		"before the anchor":                         {"UTC", 15, "2026-01-14T12:00:00Z", "2026-01-14", "2025-12", 24, "2025-12-15T00:00:00Z"},
		"on the anchor":                             {"UTC", 15, "2026-01-15T00:00:00Z", "2026-01-15", "2026-01", 24, "2026-01-15T00:00:00Z"},
		"the end of a long month before the anchor": {"UTC", 28, "2026-03-27T12:00:00Z", "2026-03-27", "2026-02", 24, "2026-02-28T00:00:00Z"},
		"clocks put forward":                        {"Europe/Berlin", 1, "2026-03-29T12:00:00Z", "2026-03-29", "2026-03", 23, "2026-03-01T00:00:00+01:00"},
		"clocks put back":                           {"Europe/Berlin", 1, "2026-10-25T12:00:00Z", "2026-10-25", "2026-10", 25, "2026-10-01T00:00:00+02:00"},
		"a day without a midnight":                  {"America/Santiago", 1, "2026-09-06T12:00:00Z", "2026-09-06", "2026-09", 23, "2026-09-01T00:00:00-04:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := DefaultConfig()
			cfg.TimeZone, cfg.MonthAnchor = c.zone, c.anchor
			g, err := New(nil, cfg) // the test makes no Redis call
			require.NoError(t, err)
			now, err := time.Parse(time.RFC3339, c.now)
			require.NoError(t, err)
			days, months := g.days(now), g.months(now)
			require.Equal(t, c.day, days[1].Name)
			require.Equal(t, c.month, months[1].Name)
			require.InDelta(t, c.dayHours, moment(days[1].EndsAt).Sub(moment(days[1].StartsAt)).Hours(), 0)
			start, err := time.Parse(time.RFC3339, c.monthStart)
			require.NoError(t, err)
			require.WithinDuration(t, start, moment(months[1].StartsAt), 0)
			for _, spans := range [][3]span{days, months} {
				require.False(t, now.Before(moment(spans[1].StartsAt)))
				require.True(t, now.Before(moment(spans[1].EndsAt)))
				for i, s := range spans {
					p, err := g.period("global:"+s.Name, now)
					require.NoError(t, err)
					require.Equal(t, [2]int64{s.StartsAt, s.EndsAt}, [2]int64{p.Start.UnixMilli(), p.End.UnixMilli()}, "the period is found by its name")
					require.True(t, i == 0 || spans[i-1].EndsAt == s.StartsAt, "no gap and no overlap")
				}
			}
		})
	}
}

// redisAt starts a Redis server with a different clock.
func redisAt(t *testing.T, now time.Time) *redis.Client {
	t.Helper()
	m := miniredis.RunT(t)
	m.SetTime(now)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestCallIsChargedToTheDayOfRedisClock(t *testing.T) {
	t.Parallel()
	for _, days := range []int{-1, 1} { // Redis's clock is a day behind or ahead
		there := time.Now().AddDate(0, 0, days)
		b := benchOn(t, redisAt(t, there), oneSource(Limits{UnitsPerDay: 10}))
		_, err := b.Acquire(t.Context(), request(keyOf(0)))
		b.seedAll(err, 0)
		require.Equal(t, "main:recognize:"+there.UTC().Format(time.DateOnly), b.acquire(request(keyOf(0))).Budgets)
	}
}

func TestUnitBudgetsAdmitNothingIfRedisClockIsFarOff(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-72 * time.Hour, 72 * time.Hour} {
		b := benchOn(t, redisAt(t, time.Now().Add(off)), oneSource(Limits{UnitsPerDay: 10}))
		_, err := b.Acquire(t.Context(), request(keyOf(0)))
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorContains(t, err, "the Redis clock")
		_, err = b.Check(t.Context(), "recognize", "", 1)
		require.ErrorContains(t, err, "the Redis clock")
		enterprise := request("enterprise_x")
		enterprise.Path = "enterprise"
		b.settle(b.acquire(enterprise), done)
	}
}
