package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryPrintsItsFiguresAsJSON(t *testing.T) {
	t.Parallel()
	figures := lastLine(t, "memory", "--mib=48", "--dir="+t.TempDir())
	require.InDelta(t, 48, figures["file_mib"], 0)
	require.Less(t, figures["growth_mib"], 32.0, "the file is not held in memory")
}
