package blackbox

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
)

// devSummary is the output of `worker dev --json`.
type devSummary struct {
	Enqueued    int     `json:"enqueued"`
	Matched     int     `json:"matched"`
	NoMatch     int     `json:"no_match"`
	Archived    int     `json:"archived"`
	Calls       int     `json:"calls"`
	BilledUnits int     `json:"billed_units"`
	Seconds     float64 `json:"seconds"`
}

func TestDevRunsTheSamplesTwiceOnTheSameDataFolder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, name := range []string{"first run", "second run"} {
		p := proctest.Start(t, []string{"REPRISE_DATA=" + data}, "worker", "dev", "--exit", "--json", "--admin", "127.0.0.1:0")
		require.Zero(t, p.Wait(2*patience), name)
		var s devSummary
		require.NoError(t, json.Unmarshal([]byte(p.Out.String()), &s), "%s: %s", name, p.Out.String())
		require.Positive(t, s.BilledUnits, name)
		require.Positive(t, s.Seconds, name)
		s.BilledUnits, s.Seconds = 0, 0
		require.Equal(t, devSummary{Enqueued: 5, Matched: 3, NoMatch: 1, Archived: 1, Calls: 7}, s, name)
		require.Empty(t, p.Log.String(), "%s: no warning", name)
	}
}

func TestDevRefusesASecondInstanceAndStopsOnSIGTERM(t *testing.T) {
	t.Parallel()
	env := []string{"REPRISE_DATA=" + t.TempDir()}
	first := proctest.Start(t, env, "worker", "dev", "--admin", "127.0.0.1:0")
	proctest.Eventually(t, func() bool { return strings.Contains(first.Out.String(), "\nUp. Web UI: ") })

	second := proctest.Run(t, env, "worker", "dev", "--exit", "--admin", "127.0.0.1:0")
	require.Equal(t, 1, second.ExitCode())
	message := strings.TrimSpace(second.Log.String())
	require.NotContains(t, message, "\n", "one sentence")
	require.Contains(t, message, "data folder")
	require.Empty(t, second.Out.String())

	_, rest, _ := strings.Cut(first.Out.String(), "\nUp. Web UI: ")
	ui, _, _ := strings.Cut(rest, " ")
	resp, err := http.Get(ui + "readyz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)

	first.Stop(patience)
	require.Empty(t, first.Log.String())
}

func TestDevReportsWhyItsWorkerCannotStartAndExits(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	addr := taken.Addr().String()
	p := proctest.Run(t, []string{"REPRISE_DATA=" + t.TempDir()}, "worker", "dev", "--admin", addr)
	require.Equal(t, 1, p.ExitCode())
	require.Contains(t, p.Log.String(), "listen on admin.addr "+addr)
	require.Equal(t, 1, strings.Count(p.Log.String(), "\n"), "one sentence: %s", p.Log.String())
}
