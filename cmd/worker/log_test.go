package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/cli"
)

func TestLogWritesDurationsWithTheirUnit(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log, err := app{&cli.Process{Err: &out}}.logger(format, "info")
		require.NoError(t, err)
		log.Info("attempt", "latency", 5272588*time.Nanosecond, "for", 90*time.Second, "none", time.Duration(0))
		if format == "text" {
			require.Contains(t, out.String(), "latency=5.27ms for=1m30s none=0s")
			continue
		}
		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
		require.Equal(t, "5.27ms", line["latency"])
		require.Equal(t, "1m30s", line["for"])
	}
	require.Equal(t, 24*time.Hour, rounded(24*time.Hour))
	require.Equal(t, -1230*time.Millisecond, rounded(-1234567*time.Microsecond))
}
