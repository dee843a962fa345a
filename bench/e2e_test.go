package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/cli"
)

func TestE2EPrintsItsFiguresAsJSON(t *testing.T) {
	t.Parallel()
	figures := lastLine(t, "e2e", "--rounds=1", "--seconds=1s", "--slots=8", "--latencies=0ms,20ms")
	require.InDelta(t, figures["reprise_per_s"]/figures["bare_per_s"], figures["ratio_0ms"], 1e-9)
	require.InDelta(t, figures["reprise_20ms_per_s"]/figures["bare_20ms_per_s"], figures["ratio_20ms"], 1e-9)
	require.Positive(t, figures["ratio_20ms"])
}

func TestE2ERefusesInvalidLatencies(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"", "20", "-1ms", "0ms,"} {
		var out, errs bytes.Buffer
		require.NotZero(t, program.Run(t.Context(), cli.Process{Args: []string{"e2e", "--latencies=" + list}, Out: &out, Err: &errs}))
		require.Contains(t, errs.String(), "--latencies", list)
	}
}
