package blackbox

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// devSummary is what `worker dev --json` prints.
type devSummary struct {
	Enqueued    int     `json:"enqueued"`
	Matched     int     `json:"matched"`
	NoMatch     int     `json:"no_match"`
	Archived    int     `json:"archived"`
	Calls       int     `json:"calls"`
	BilledUnits int     `json:"billed_units"`
	Seconds     float64 `json:"seconds"`
}

func TestDevRunsTheSamplesAndRunsThemAgainOnTheSameData(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, name := range []string{"first run", "second run"} {
		p := start(t, []string{"REPRISE_DATA=" + data}, "worker", "dev", "--exit", "--json", "--admin", "127.0.0.1:0")
		require.Zero(t, p.wait(time.Minute), name)
		var s devSummary
		require.NoError(t, json.Unmarshal([]byte(p.out.String()), &s), "%s: %s", name, p.out.String())
		require.Positive(t, s.BilledUnits, name)
		require.Less(t, s.Seconds, 60.0, name)
		s.BilledUnits, s.Seconds = 0, 0
		require.Equal(t, devSummary{Enqueued: 5, Matched: 3, NoMatch: 1, Archived: 1, Calls: 7}, s, name)
		require.Empty(t, p.log.String(), "%s: nothing to warn about", name)
	}
}

func TestDevStaysUpRefusesASecondOneAndStopsOnSIGTERM(t *testing.T) {
	t.Parallel()
	env := []string{"REPRISE_DATA=" + t.TempDir()}
	first := start(t, env, "worker", "dev", "--admin", "127.0.0.1:0")
	require.True(t, eventually(time.Minute, func() bool { return strings.Contains(first.out.String(), "\nUp. Web UI: ") }))

	second := run(t, env, "worker", "dev", "--exit", "--admin", "127.0.0.1:0")
	require.Equal(t, 1, second.code)
	said := strings.TrimSpace(second.log.String())
	require.NotContains(t, said, "\n", "one sentence")
	require.Contains(t, said, "data folder")
	require.Empty(t, second.out.String())

	_, rest, _ := strings.Cut(first.out.String(), "\nUp. Web UI: ")
	ui, _, _ := strings.Cut(rest, " ")
	resp, err := http.Get(ui + "readyz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)

	first.terminate()
	require.Zero(t, first.wait(30*time.Second))
	require.Empty(t, first.log.String())
}

func TestDevWhoseWorkerCannotStartSaysWhyAndEnds(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	addr := taken.Addr().String()
	p := run(t, []string{"REPRISE_DATA=" + t.TempDir()}, "worker", "dev", "--admin", addr)
	require.Equal(t, 1, p.code)
	require.Contains(t, p.log.String(), "listen on admin.addr "+addr)
	require.Equal(t, 1, strings.Count(p.log.String(), "\n"), "one sentence: %s", p.log.String())
}
