package main

import (
	"errors"
	"os/user"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"reprise/internal/cli"
	"reprise/internal/text"
)

func TestByIsTheFlagThenTheEnvironmentThenTheSystemUser(t *testing.T) {
	t.Parallel()
	p := &cli.Process{}
	a := newApp(p, pflag.NewFlagSet("inspect", pflag.ContinueOnError))
	require.NotEmpty(t, a.by())
	p.Environ = append(p.Environ, "LOGNAME=log")
	require.Equal(t, "log", a.by())
	p.Environ = append(p.Environ, "USER=ops")
	require.Equal(t, "ops", a.by())
	a.who = " alice "
	require.Equal(t, "alice", a.by())
	require.Equal(t, "bob", systemUser(&user.User{Username: "bob"}, nil))
	require.Regexp(t, `^uid -?\d+$`, systemUser(nil, errors.New("user: unknown userid 1000")))
}

func TestNameTextShowsTheEndOfLongNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a.mp3", nameText("/music/b/a.mp3"))
	require.Equal(t, "–", nameText(""))
	require.Equal(t, "https://x.test/a.mp3", nameText("https://x.test/a.mp3"))
	long := nameText("https://x.test/0123456789012345678901234567890123456789/the-end.mp3")
	require.Len(t, []rune(long), nameWidth)
	require.Regexp(t, `^….*the-end.mp3$`, long)
}

func TestMomentReadsAgesAndDates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
	times := text.Times{Zone: time.FixedZone("UTC+1", 3600), Now: now}
	for value, expected := range map[string]string{
		"2026-11-30": "2026-11-29T23:00:00Z", "7d": "2026-11-23T14:00:00Z", "90m": "2026-11-30T12:30:00Z", "2026-11-30T14:00": "2026-11-30T13:00:00Z",
	} {
		at, err := moment(value, times)
		require.NoError(t, err, value)
		require.Equal(t, expected, at.UTC().Format(time.RFC3339), value)
	}
	at, err := moment("", times)
	require.NoError(t, err)
	require.True(t, at.IsZero())
	for _, bad := range []string{"yesterday", "-5m", "7", "2026-13-01"} {
		_, err = moment(bad, times)
		require.ErrorContains(t, err, "expected 90m, 24h, 7d", bad)
	}
}

func TestParseRateReadsPerSecondAndPerMinute(t *testing.T) {
	t.Parallel()
	for rate, expected := range map[string]time.Duration{"20/s": 50 * time.Millisecond, "300/min": 200 * time.Millisecond, "2": 500 * time.Millisecond, "0.5/s": 2 * time.Second} {
		got, err := parseRate(rate)
		require.NoError(t, err, rate)
		require.Equal(t, expected, got, rate)
	}
	for _, bad := range []string{"", "0/s", "-1", "20/h", "fast", "NaN"} {
		_, err := parseRate(bad)
		require.Error(t, err, bad)
	}
}
