package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHelpListsTheCases(t *testing.T) {
	t.Parallel()
	for arg, code := range map[string]int{"-h": cli.OK, "--help": cli.OK, "": cli.Usage} {
		var out, errs bytes.Buffer
		require.Equal(t, code, program.Run(t.Context(), cli.Process{Args: strings.Fields(arg), Out: &out, Err: &errs}))
		for name, c := range cases {
			require.Contains(t, out.String(), name)
			require.Contains(t, out.String(), c.about)
		}
		require.Empty(t, errs.String())
	}
}

func TestUnknownCaseErrorPointsToTheHelp(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.Equal(t, cli.Usage, program.Run(t.Context(), cli.Process{Args: []string{"nothing"}, Out: &out, Err: &errs}))
	require.Contains(t, errs.String(), `unknown command "nothing"`)
	require.Contains(t, errs.String(), "bench --help")
	require.Empty(t, out.String())
}

func TestEveryCaseHasHelpForItsFlags(t *testing.T) {
	t.Parallel()
	for name := range cases {
		var out, errs bytes.Buffer
		require.Zero(t, program.Run(t.Context(), cli.Process{Args: []string{name, "-h"}, Out: &out, Err: &errs}), name)
		require.Empty(t, errs.String(), name)
		require.NotEmpty(t, out.String(), name)
	}
}

func TestWrongFlagValuesAreNamed(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--round 0s is too small":          {"store", "--round=0"},
		"--rounds 0 is too small":          {"overhead", "--rounds=0"},
		"--warmup -1s is too small":        {"goodput", "--warmup=-1s"},
		"--mib -1 is too small":            {"memory", "--mib=-1"},
		"--tasks must be more than":        {"overhead", "--tasks=5", "--warm=5"},
		"--every must be at most":          {"chaos-admission", "--every=1h"},
		"--latencies must not be negative": {"e2e", "--latencies=-1s"},
	} {
		var out, errs bytes.Buffer
		require.NotZero(t, program.Run(t.Context(), cli.Process{Args: args, Out: &out, Err: &errs}))
		require.Contains(t, errs.String(), want)
		require.Empty(t, out.String())
	}
}

func TestStorePrintsItsFiguresAsJSON(t *testing.T) {
	t.Parallel()
	figures := lastLine(t, "store", "--rounds=1", "--round=100ms", "--callers=4", "--dir="+t.TempDir())
	require.Positive(t, figures["settles_per_s"])
	require.Positive(t, figures["share"])
}

func TestMedianOfOddAndEvenNumberOfValues(t *testing.T) {
	t.Parallel()
	require.Zero(t, median(nil))
	require.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
}

// lastLine runs a case and decodes the JSON on the last line of its output.
func lastLine(t *testing.T, args ...string) map[string]float64 {
	t.Helper()
	var out, errs bytes.Buffer
	require.Zero(t, program.Run(t.Context(), cli.Process{Args: args, Out: &out, Err: &errs}), errs.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Greater(t, len(lines), 1, "a table precedes the JSON")
	var figures map[string]float64
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &figures))
	return figures
}
